#include <ini.h>
#include <string.h>

#include "ini_line.h"
#include "text.h"

/*
 * Gives libinih the next line, or the end. The input also ends after an error, unless the reader goes
 * on. Comments and lines with an error become empty lines. So libinih's own syntax of comments does
 * not matter.
 */
static char *next_line(char *buffer, int size, void *stream)
{
	struct spill_ini *file = stream;
	const char *start = file->data + file->at, *newline;
	size_t rest = file->size - file->at;

	if (!rest)
		spill_ini_end_rule(file);
	if (spill_ini_stops(file) || !rest)
		return NULL;
	newline = memchr(start, '\n', rest);
	file->line++;
	file->text = start;
	file->length = newline ? (size_t)(newline - start) : rest;
	file->at += file->length + (newline ? 1 : 0);
	if (newline && file->length && start[file->length - 1] == '\r')
		file->length--;

	bool valid = spill_ini_check_line(file);

	if (valid && file->length + 2 > (size_t)size)
		valid = spill_ini_fail(file, (size_t)size - 2, "the line is too long");
	if (!valid && spill_ini_stops(file))
		return NULL;

	size_t first = spill_ini_skip_blanks(file, 0);
	bool comment = first < file->length && file->text[first] == '#';
	size_t copied = valid && !comment ? file->length : 0;

	memcpy(buffer, file->text, copied);
	memcpy(buffer + copied, "\n", 2);
	return buffer;
}

static bool say_duplicate(struct spill_ini *file, const char *key, unsigned first)
{
	return spill_ini_fail(file, 0, "%s is set twice; the first is in line %u",
	                      spill_quote(key, strlen(key)).text, first);
}

/* Fails with the error about the key or the value of the current line. */
static bool fail_option(struct spill_ini *file, const struct spill_error *error)
{
	size_t value = spill_ini_skip_blanks(file, spill_ini_find(file, 0, "=") + 1);

	return spill_ini_fail(file, error->offset + (error->part == SPILL_PART_VALUE ? value : 0), "%s",
	                      error->text);
}

static bool take_rule_key(struct spill_ini *file, const char *key, const char *value)
{
	struct spill_error error;
	int row = spill_rule_option_find(key, &error);

	if (row < 0)
		return fail_option(file, &error);
	if (file->rule_seen[row])
		return say_duplicate(file, key, file->rule_seen[row]);
	file->rule_seen[row] = file->line;
	if (spill_rule_option_put(&file->rule, (unsigned)row, value, &error))
		return fail_option(file, &error);
	if (file->taker && file->taker->key)
		file->taker->key(file->taker->user, (unsigned)row, value, file->line);
	return true;
}

/* libinih's handler for the option of the current line. 0: an error. */
static int take_option(void *user, const char *section, const char *key, const char *value)
{
	struct spill_ini *file = user;
	struct spill_error error;
	unsigned *seen = file->app[0] ? file->app_seen : file->seen;
	int slot;

	if (file->rule.name[0])
		return take_rule_key(file, key, value);
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

static bool read_once(struct spill_ini *file)
{
	int result;

	file->at = 0;
	file->line = 0;
	file->in_section = file->lost = false;
	file->app[0] = '\0';
	file->apps = (struct spill_ini_names){"app", 0, SPILL_INI_APPS, file->app_at};
	file->rules = (struct spill_ini_names){"rule", 0, SPILL_RULES, file->rule_at};
	file->rule.name[0] = '\0';
	memset(file->seen, 0, sizeof(file->seen));
	spill_policy_default(&file->scratch);
	result = ini_parse_stream(next_line, file, take_option, file);
	if (result && !file->failed) {
		/* libinih refuses a line that we accept: it is an error, too. */
		file->line = result > 0 ? (unsigned)result : file->line;
		spill_ini_fail(file, 0, "not a line of a policy file");
	}
	return !file->failed;
}

/* The longest line is a variable of Debian's libinih. Elsewhere libinih is built with it, as meson's subproject. */
static void allow_long_lines(void)
{
#ifdef SPILL_INI_MAX_LINE_VARIABLE
	/* The same value at each call, so two threads do not disturb each other. */
	ini_max_line = SPILL_INI_LINE + 3;
#else
	_Static_assert(INI_MAX_LINE == SPILL_INI_LINE + 3, "libinih was built for other lines than ours");
#endif
}

bool spill_ini_read_in(void *room, const char *name, const char *data, size_t size,
                       const struct spill_ini_taker *taker, char *error, size_t error_size)
{
	struct spill_ini *file = room;

	memset(file, 0, sizeof(*file));
	file->name = name;
	file->data = data;
	file->size = size;
	file->error = error;
	file->error_size = error_size;
	file->goes_on = taker && taker->problem;
	file->taker = file->goes_on ? taker : NULL;
	allow_long_lines();
	if (size > SPILL_INI_FILE) {
		file->line = 1;
		return spill_ini_fail(file, 0, "the file is too long");
	}
	/* A file is taken whole or not at all, so a first reading checks it. */
	if (!read_once(file) || file->goes_on)
		return !file->failed;
	file->taker = taker;
	return !taker || read_once(file);
}

bool spill_ini_read(const char *name, const char *data, size_t size, const struct spill_ini_taker *taker,
                    char *error, size_t error_size)
{
	struct spill_ini room;

	return spill_ini_read_in(&room, name, data, size, taker, error, error_size);
}

const struct spill_profile *spill_profile_find(const char *name)
{
	for (const struct spill_profile *profile = spill_profiles; profile->name; profile++) {
		if (!strcmp(profile->name, name))
			return profile;
	}
	return NULL;
}
