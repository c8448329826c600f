/* Lines of a policy file: their form, and their sections. */
#include "ini_line.h"

#include <string.h>

#include "text.h"

bool spill_ini_fail(struct spill_ini *file, size_t column, const char *why, ...)
{
	va_list arguments;
	struct spill_text text;

	if (spill_ini_stops(file))
		return false;
	file->failed = true;
	file->rule_bad = true;
	text = spill_text_begin(file->error, file->error_size);
	spill_text_format(&text, "%s:%u:%zu: ", file->name, file->line, column + 1);
	va_start(arguments, why);
	spill_text_vformat(&text, why, arguments);
	va_end(arguments);
	if (file->goes_on)
		file->taker->problem(file->taker->user, file->error);
	return false;
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

size_t spill_ini_skip_blanks(const struct spill_ini *file, size_t at)
{
	while (at < file->length && is_blank(file->text[at]))
		at++;
	return at;
}

size_t spill_ini_find(const struct spill_ini *file, size_t at, const char *bytes)
{
	while (at < file->length && !strchr(bytes, file->text[at]))
		at++;
	return at;
}

/* A blank and then # or ; within the line is refused: it could be a comment, or not. */
static bool check_comment(struct spill_ini *file, size_t at)
{
	for (; at < file->length; at++) {
		if (strchr("#;", file->text[at]) && is_blank(file->text[at - 1]))
			return spill_ini_fail(file, at,
			                      "a comment needs a line of its own, beginning with #");
	}
	return true;
}

/* Line number of the byte at `at`. */
static unsigned line_of(const struct spill_ini *file, size_t at)
{
	unsigned line = 1;

	for (size_t i = 0; i < at; i++)
		line += file->data[i] == '\n';
	return line;
}

/* Two sections with one name are refused: a reader could overlook one of them. */
static bool add_name(struct spill_ini *file, struct spill_ini_names *names, const char *name, size_t column)
{
	size_t length = strlen(name);

	for (unsigned i = 0; i < names->count; i++) {
		const char *other = file->data + names->at[i];

		/* A name ends at its bracket. */
		if (memcmp(other, name, length) || other[length] != ']')
			continue;
		return spill_ini_fail(
		    file, column, "[%s NAME] with the name %s is there twice; the first is in line %u",
		    names->word, spill_quote(name, length).text, line_of(file, names->at[i]));
	}
	if (names->count == names->most)
		return spill_ini_fail(file, 0, "too many [%s NAME] in one file: at most %u", names->word,
		                      names->most);
	names->at[names->count++] = (uint32_t)((size_t)(file->text - file->data) + column);
	return true;
}

static bool begin_app(struct spill_ini *file, const char *name, size_t column)
{
	memcpy(file->app, name, strlen(name) + 1);
	memset(file->app_seen, 0, sizeof(file->app_seen));
	return add_name(file, &file->apps, name, column);
}

static bool begin_rule(struct spill_ini *file, const char *name, size_t column)
{
	memset(file->rule_seen, 0, sizeof(file->rule_seen));
	memset(&file->rule, 0, sizeof(file->rule));
	file->rule_bad = false;
	memcpy(file->rule.name, name, strlen(name) + 1);
	file->rule_line = file->line;
	return add_name(file, &file->rules, name, column);
}

static bool pass_on_rule(struct spill_ini *file)
{
	unsigned line = file->line;
	struct spill_error error;

	if (spill_rule_check(&file->rule, &error)) {
		if (file->taker)
			file->taker->rule(file->taker->user, &file->rule, file->rule_line);
		return true;
	}
	file->line = file->rule_line;
	spill_ini_fail(file, 1 + error.offset, "%s", error.text);
	file->line = line;
	return false;
}

bool spill_ini_end_rule(struct spill_ini *file)
{
	bool valid = true;

	if (file->rule.name[0] && !file->rule_bad)
		valid = pass_on_rule(file);
	file->rule.name[0] = '\0';
	return valid;
}

static bool check_section(struct spill_ini *file)
{
	size_t end = spill_ini_find(file, 0, "]");
	char section[SPILL_INI_NAME + 1];
	struct spill_error error;
	const char *app, *rule;

	if (end == file->length)
		return spill_ini_fail(file, end, "the bracket is not closed: ']' is missing");
	if (spill_ini_skip_blanks(file, end + 1) != file->length)
		return spill_ini_fail(file, spill_ini_skip_blanks(file, end + 1),
		                      "nothing may follow a section's ']'");
	if (end == 1)
		return spill_ini_fail(file, 1, "the section's name is missing");
	if (is_blank(file->text[1]) || is_blank(file->text[end - 1]))
		return spill_ini_fail(file, is_blank(file->text[1]) ? 1 : end - 1,
		                      "no blank inside the brackets' ends");
	if (end - 1 > SPILL_INI_NAME)
		return spill_ini_fail(file, 1, "the section's name is too long");
	memcpy(section, file->text + 1, end - 1);
	section[end - 1] = '\0';
	if (spill_option_section(section, &error))
		return spill_ini_fail(file, 1 + error.offset, "%s", error.text);
	file->in_section = true;
	app = spill_option_app(section);
	rule = spill_option_rule(section);
	if (file->taker && file->taker->section)
		file->taker->section(file->taker->user, section, file->line);
	if (rule)
		return begin_rule(file, rule, 1 + (size_t)(rule - section));
	return !app || begin_app(file, app, 1 + (size_t)(app - section));
}

static bool begin_section(struct spill_ini *file)
{
	file->app[0] = '\0';
	file->lost = !check_section(file);
	if (file->lost)
		file->rule.name[0] = '\0';
	return !file->lost;
}

/* A key as documents write it, host.limit, tells its section. */
static bool fail_outside(struct spill_ini *file, size_t key_end)
{
	char key[SPILL_INI_NAME + 1] = "";
	char *dot;

	memcpy(key, file->text, key_end);
	dot = strchr(key, '.');
	if (!dot || dot == key || !dot[1])
		return spill_ini_fail(file, 0,
		                      "a key outside a section: write its section above, as [device] above "
		                      "limit = 4GiB");
	*dot = '\0';
	return spill_ini_fail(file, 0, "a key outside a section: write [%s] above, and then %s = …", key,
	                      dot + 1);
}

static bool check_option(struct spill_ini *file)
{
	size_t separator = spill_ini_find(file, 0, "=:"), key_end = separator;

	if (separator == file->length)
		return spill_ini_fail(file, separator, "'=' is missing: write key = value");
	if (file->text[separator] == ':')
		return spill_ini_fail(file, separator, "':' separates nothing here: write key = value");
	while (key_end && is_blank(file->text[key_end - 1]))
		key_end--;
	if (!key_end)
		return spill_ini_fail(file, 0, "the key before '=' is missing");
	if (key_end > SPILL_INI_NAME)
		return spill_ini_fail(file, 0, "the key is too long");
	if (!file->in_section)
		return fail_outside(file, key_end);
	return check_comment(file, separator + 1);
}

bool spill_ini_check_line(struct spill_ini *file)
{
	size_t start = spill_ini_skip_blanks(file, 0);

	if (file->line == 1 && file->length >= 3 && !memcmp(file->text, "\xef\xbb\xbf", 3))
		return spill_ini_fail(file, 0,
		                      "the file begins with a byte order mark; save it as plain UTF-8");
	for (size_t i = 0; i < file->length; i++) {
		unsigned char c = (unsigned char)file->text[i];

		if (c == 0x7f || (c < 0x20 && c != '\t'))
			return spill_ini_fail(
			    file, i, c ? "a control character" : "a NUL byte: this is not a text file");
	}
	if (file->length > SPILL_INI_LINE)
		return spill_ini_fail(file, SPILL_INI_LINE, "the line is too long");
	if (start == file->length || file->text[start] == '#')
		return true;
	if (file->text[start] == ';')
		return spill_ini_fail(file, start, "a comment begins with #");
	if (start) {
		/* The lines below an indented head would be taken for the section before. */
		file->lost = file->lost || file->text[start] == '[';
		return spill_ini_fail(file, start,
		                      "an indented line: a value cannot continue on the next line");
	}
	if (file->text[0] != '[')
		return !file->lost && check_option(file);
	if (!spill_ini_end_rule(file) && spill_ini_stops(file))
		return false;
	return begin_section(file);
}
