#include <ini.h>
#include <string.h>

#include "ini_file.h"
#include "options.h"
#include "rule_option.h"
#include "text.h"

#define NAME_MAX_INI 49 /* libinih cuts section and key at 50 bytes with the terminator */

/* NAMEs of the sections `[app NAME]` or `[rule NAME]` so far. */
struct names {
	const char *word;
	unsigned count, most;
	uint32_t *at; /* where they begin in the data: small, for the stack */
};

struct file {
	const char *name;
	const char *data;
	size_t size, at;
	unsigned line;
	const char *text; /* of the current line, where columns are counted; not terminated */
	size_t length;
	bool in_section;
	const struct spill_ini_taker *taker;
	char *error;
	size_t error_size;
	bool failed;
	struct spill_policy scratch;       /* values are validated by setting them */
	unsigned seen[SPILL_OPTION_SLOTS]; /* line of an option's first value, to refuse a second */
	char app[NAME_MAX_INI + 1];        /* NAME of the [app NAME] that we are in, or "" */
	unsigned app_seen[SPILL_OPTION_SLOTS];
	struct names apps, rules;
	uint32_t app_at[SPILL_INI_APPS], rule_at[SPILL_RULES];
	struct spill_rule rule; /* of the [rule NAME] that we are in; no name: of none */
	unsigned rule_line;
	unsigned rule_seen[SPILL_RULE_OPTIONS];
};
_Static_assert(sizeof(struct file) < 12 * 1024, "it is on the stack of a host program's thread");

/* Begins `FILE:LINE:COL: `; the first error stands. */
static bool fail_at(struct file *file, unsigned line, size_t column, const char *why)
{
	struct spill_text text;

	if (file->failed)
		return false;
	file->failed = true;
	text = spill_text_begin(file->error, file->error_size);
	spill_text_add(&text, file->name);
	spill_text_add(&text, ":");
	spill_text_number(&text, line);
	spill_text_add(&text, ":");
	spill_text_number(&text, column + 1);
	spill_text_add(&text, ": ");
	spill_text_add(&text, why);
	return false;
}

static bool fail(struct file *file, size_t column, const char *why)
{
	return fail_at(file, file->line, column, why);
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

/* Index of the first byte from `at` that is no blank; the length if none is. */
static size_t skip_blanks(const struct file *file, size_t at)
{
	while (at < file->length && is_blank(file->text[at]))
		at++;
	return at;
}

static size_t find(const struct file *file, size_t at, const char *bytes)
{
	while (at < file->length && !strchr(bytes, file->text[at]))
		at++;
	return at;
}

/* What libinih or a person could read in two ways: a blank and then # or ; within the line. */
static bool check_comment(struct file *file, size_t at)
{
	for (; at < file->length; at++) {
		if (strchr("#;", file->text[at]) && is_blank(file->text[at - 1]))
			return fail(file, at, "a comment needs a line of its own, beginning with #");
	}
	return true;
}

/* Line of the byte at `at`. */
static unsigned line_of(const struct file *file, size_t at)
{
	unsigned line = 1;

	for (size_t i = 0; i < at; i++)
		line += file->data[i] == '\n';
	return line;
}

static void add_section(struct spill_text *text, const char *word)
{
	spill_text_add(text, "[");
	spill_text_add(text, word);
	spill_text_add(text, " NAME]");
}

/* Two sections of one name would be merged, and who reads the one does not see the other. */
static bool add_name(struct file *file, struct names *names, const char *name, size_t column)
{
	size_t length = strlen(name);
	char why[160];
	struct spill_text text = spill_text_begin(why, sizeof(why));

	for (unsigned i = 0; i < names->count; i++) {
		const char *other = file->data + names->at[i];

		/* A name ends at its bracket, and has none. */
		if (memcmp(other, name, length) || other[length] != ']')
			continue;
		add_section(&text, names->word);
		spill_text_add(&text, " with the name ");
		spill_text_quote(&text, name, length);
		spill_text_add(&text, " is there twice; the first is in line ");
		spill_text_number(&text, line_of(file, names->at[i]));
		return fail(file, column, why);
	}
	if (names->count == names->most) {
		spill_text_add(&text, "too many ");
		add_section(&text, names->word);
		spill_text_add(&text, " in one file: at most ");
		spill_text_number(&text, names->most);
		return fail(file, 0, why);
	}
	names->at[names->count++] = (uint32_t)((size_t)(file->text - file->data) + column);
	return true;
}

static bool begin_app(struct file *file, const char *name, size_t column)
{
	memcpy(file->app, name, strlen(name) + 1);
	memset(file->app_seen, 0, sizeof(file->app_seen));
	return add_name(file, &file->apps, name, column);
}

static bool begin_rule(struct file *file, const char *name, size_t column)
{
	memset(file->rule_seen, 0, sizeof(file->rule_seen));
	memset(&file->rule, 0, sizeof(file->rule));
	memcpy(file->rule.name, name, strlen(name) + 1);
	file->rule_line = file->line;
	return add_name(file, &file->rules, name, column);
}

/* Where a section ends: the rule that we are in, if any, is complete. */
static bool end_rule(struct file *file)
{
	struct spill_error error;

	if (!file->rule.name[0])
		return true;
	if (!spill_rule_check(&file->rule, &error))
		return fail_at(file, file->rule_line, 1 + error.offset, error.text);
	if (file->taker)
		file->taker->rule(file->taker->user, &file->rule, file->rule_line);
	file->rule.name[0] = '\0';
	return true;
}

static bool check_section(struct file *file)
{
	size_t end = find(file, 0, "]");
	char section[NAME_MAX_INI + 1];
	struct spill_error error;
	const char *app, *rule;

	if (!end_rule(file))
		return false;
	if (end == file->length)
		return fail(file, end, "the bracket is not closed: ']' is missing");
	if (skip_blanks(file, end + 1) != file->length)
		return fail(file, skip_blanks(file, end + 1), "nothing may follow a section's ']'");
	if (end == 1)
		return fail(file, 1, "the section's name is missing");
	if (is_blank(file->text[1]) || is_blank(file->text[end - 1]))
		return fail(file, is_blank(file->text[1]) ? 1 : end - 1,
		            "no blank inside the brackets' ends");
	if (end - 1 > NAME_MAX_INI)
		return fail(file, 1, "the section's name is too long");
	memcpy(section, file->text + 1, end - 1);
	section[end - 1] = '\0';
	if (spill_option_section(section, &error))
		return fail(file, 1 + error.offset, error.text);
	file->in_section = true;
	file->app[0] = '\0';
	app = spill_option_app(section);
	rule = spill_option_rule(section);
	if (rule)
		return begin_rule(file, rule, 1 + (size_t)(rule - section));
	return !app || begin_app(file, app, 1 + (size_t)(app - section));
}

static bool check_option(struct file *file)
{
	size_t separator = find(file, 0, "=:"), key_end = separator;

	if (separator == file->length)
		return fail(file, separator, "'=' is missing: write key = value");
	if (file->text[separator] == ':')
		return fail(file, separator, "':' separates nothing here: write key = value");
	while (key_end && is_blank(file->text[key_end - 1]))
		key_end--;
	if (!key_end)
		return fail(file, 0, "the key before '=' is missing");
	if (key_end > NAME_MAX_INI)
		return fail(file, 0, "the key is too long");
	if (!file->in_section)
		return fail(file, 0, "a key outside a section: write [device] above, and then limit = 4GiB");
	return check_comment(file, separator + 1);
}

/* Refuses what cannot be a line of a policy. Blank lines and comments are fine anywhere. */
static bool check_line(struct file *file)
{
	size_t start = skip_blanks(file, 0);

	if (file->line == 1 && file->length >= 3 && !memcmp(file->text, "\xef\xbb\xbf", 3))
		return fail(file, 0, "the file begins with a byte order mark; save it as plain UTF-8");
	for (size_t i = 0; i < file->length; i++) {
		unsigned char c = (unsigned char)file->text[i];

		if (c == 0x7f || (c < 0x20 && c != '\t'))
			return fail(file, i,
			            c ? "a control character" : "a NUL byte: this is not a text file");
	}
	if (file->length > SPILL_INI_LINE)
		return fail(file, SPILL_INI_LINE, "the line is too long");
	if (start == file->length || file->text[start] == '#')
		return true;
	if (file->text[start] == ';')
		return fail(file, start, "a comment begins with #");
	if (start)
		return fail(file, start, "an indented line: a value cannot continue on the next line");
	return file->text[0] == '[' ? check_section(file) : check_option(file);
}

/*
 * libinih's reader: gives it the next line, or the end. After an error the input ends too. Comments come as
 * empty lines, so that libinih's own idea of them does not matter.
 */
static char *next_line(char *buffer, int size, void *stream)
{
	struct file *file = stream;
	const char *start = file->data + file->at, *newline;
	size_t rest = file->size - file->at;

	if (!rest)
		end_rule(file);
	if (file->failed || !rest)
		return NULL;
	newline = memchr(start, '\n', rest);
	file->line++;
	file->text = start;
	file->length = newline ? (size_t)(newline - start) : rest;
	file->at += file->length + (newline ? 1 : 0);
	if (newline && file->length && start[file->length - 1] == '\r')
		file->length--;
	if (!check_line(file))
		return NULL;
	if (file->length + 2 > (size_t)size) {
		fail(file, (size_t)size - 2, "the line is too long");
		return NULL;
	}

	size_t first = skip_blanks(file, 0);
	size_t copied = first < file->length && file->text[first] == '#' ? 0 : file->length;

	memcpy(buffer, file->text, copied);
	memcpy(buffer + copied, "\n", 2);
	return buffer;
}

static bool say_duplicate(struct file *file, const char *key, unsigned first)
{
	char why[160];
	struct spill_text text = spill_text_begin(why, sizeof(why));

	spill_text_quote(&text, key, strlen(key));
	spill_text_add(&text, " is set twice; the first is in line ");
	spill_text_number(&text, first);
	return fail(file, 0, why);
}

/* What is wrong with the key or the value of the current line. */
static bool fail_option(struct file *file, const struct spill_error *error)
{
	size_t value = skip_blanks(file, find(file, 0, "=") + 1);

	return fail(file, error->offset + (error->part == SPILL_PART_VALUE ? value : 0), error->text);
}

static bool handle_rule(struct file *file, const char *key, const char *value)
{
	struct spill_error error;
	int row = spill_rule_option_find(key, &error);

	if (row < 0)
		return fail_option(file, &error);
	if (file->rule_seen[row])
		return say_duplicate(file, key, file->rule_seen[row]);
	file->rule_seen[row] = file->line;
	return !spill_rule_option_put(&file->rule, (unsigned)row, value, &error) || fail_option(file, &error);
}

/* libinih's handler: one option of the current line; 0 is an error. */
static int handle(void *user, const char *section, const char *key, const char *value)
{
	struct file *file = user;
	struct spill_error error;
	unsigned *seen = file->app[0] ? file->app_seen : file->seen;
	int slot;

	if (file->rule.name[0])
		return handle_rule(file, key, value);
	slot = spill_option_find(section, key, &error);
	if (slot < 0)
		return fail_option(file, &error);
	if (seen[slot])
		return say_duplicate(file, key, seen[slot]);
	seen[slot] = file->line;
	if (spill_option_put(&file->scratch, (unsigned)slot, value, &error))
		return fail_option(file, &error);
	if (file->taker)
		file->taker->option(file->taker->user, (unsigned)slot, value, file->line,
		                    file->app[0] ? file->app : NULL);
	return 1;
}

static bool pass(struct file *file)
{
	int result;

	file->at = 0;
	file->line = 0;
	file->in_section = false;
	file->app[0] = '\0';
	file->apps = (struct names){"app", 0, SPILL_INI_APPS, file->app_at};
	file->rules = (struct names){"rule", 0, SPILL_RULES, file->rule_at};
	file->rule.name[0] = '\0';
	memset(file->seen, 0, sizeof(file->seen));
	spill_policy_default(&file->scratch);
	result = ini_parse_stream(next_line, file, handle, file);
	if (result && !file->failed) {
		/* Stricter than ours in a way that we do not know: its word counts, at its line. */
		file->line = result > 0 ? (unsigned)result : file->line;
		fail(file, 0, "not a line of a policy file");
	}
	return !file->failed;
}

bool spill_ini_read(const char *name, const char *data, size_t size, const struct spill_ini_taker *taker,
                    char *error, size_t error_size)
{
	struct file file = {
	    .name = name, .data = data, .size = size, .error = error, .error_size = error_size};

	/* The same value at every call, so that callers in two threads do not disturb each other. */
	ini_max_line = SPILL_INI_LINE + 3;
	if (size > SPILL_INI_FILE) {
		file.line = 1;
		return fail(&file, 0, "the file is too long");
	}
	if (!pass(&file))
		return false;
	file.taker = taker;
	return !taker || pass(&file);
}
