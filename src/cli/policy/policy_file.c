#include "policy_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "config.h"

/* -- messages ---------------------------------------------------------------------------------- */

static void add_message(struct cli_messages *messages, unsigned line, const char *text)
{
	size_t at = messages->count;

	messages->list =
	    cli_grow(messages->list, messages->count, &messages->size, sizeof(messages->list[0]));
	for (; at && messages->list[at - 1].line > line; at--)
		messages->list[at] = messages->list[at - 1];
	messages->list[at] = (struct cli_message){line, cli_strdup(text)};
	messages->count++;
}

static void release_messages(struct cli_messages *messages)
{
	for (size_t i = 0; i < messages->count; i++)
		free(messages->list[i].text);
	free(messages->list);
}

void cli_policy_file_warn(struct cli_policy_file *file, unsigned line, const char *format, ...)
{
	char text[2 * (size_t)SPILL_PATH_MAX + 1024];
	int length = snprintf(text, sizeof(text), "%s:%u: ", file->path, line);
	va_list arguments;

	va_start(arguments, format);
	if (length > 0 && (size_t)length < sizeof(text))
		vsnprintf(text + length, sizeof(text) - (size_t)length, format, arguments);
	va_end(arguments);
	add_message(&file->warnings, line, text);
}

/* -- contents ---------------------------------------------------------------------------------- */

/* An empty section of options in general is harmless: its keys are comments, as in the sample. */
static void end_section(struct cli_policy_file *file)
{
	bool named = spill_option_app(file->section) || !strncmp(file->section, "device ", 7);

	if (named && !file->keys)
		cli_policy_file_warn(file, file->section_line, "[%s] has no key, so it changes nothing",
		                     file->section);
}

static void take_section(void *user, const char *section, unsigned line)
{
	struct cli_policy_file *file = user;
	const char *app = spill_option_app(section);

	end_section(file);
	snprintf(file->section, sizeof(file->section), "%s", section);
	file->section_line = line;
	file->keys = 0;
	if (app)
		cli_check_app_name(file, app, line);
}

static void take_option(void *user, unsigned slot, const char *value, unsigned line, const char *app)
{
	struct cli_policy_file *file = user;
	char name[64];

	file->keys++;
	file->options =
	    cli_grow(file->options, file->option_count, &file->option_size, sizeof(file->options[0]));
	file->options[file->option_count++] =
	    (struct cli_set_option){slot, line, cli_strdup(value), cli_strdup(app)};
	spill_option_name(slot, name, sizeof(name));
	cli_check_value(file, spill_option_row(slot), name, value, line);
}

static void take_rule_key(void *user, unsigned row, const char *value, unsigned line)
{
	struct cli_policy_file *file = user;
	const struct spill_option *option = &spill_rule_option_row(row)->option;
	char name[128];

	file->keys++;
	file->key_line[row] = line;
	snprintf(name, sizeof(name), "%s of %s", option->key, file->section);
	cli_check_value(file, option, name, value, line);
}

static void take_rule(void *user, const struct spill_rule *rule, unsigned line)
{
	struct cli_policy_file *file = user;
	struct cli_set_rule *set = &file->rules[file->rule_count++];

	set->rule = *rule;
	set->line = line;
	memcpy(set->key_line, file->key_line, sizeof(set->key_line));
}

/* The line is in the text, behind the file's name. */
static void take_error(void *user, const char *text)
{
	struct cli_policy_file *file = user;

	file->keys++;
	add_message(&file->errors, (unsigned)strtoul(text + strlen(file->path) + 1, NULL, 10), text);
}

void cli_policy_file_release(struct cli_policy_file *file)
{
	for (size_t i = 0; i < file->option_count; i++) {
		free(file->options[i].value);
		free(file->options[i].app);
	}
	free(file->options);
	release_messages(&file->errors);
	release_messages(&file->warnings);
	memset(file, 0, sizeof(*file));
}

bool cli_policy_file_read(struct cli_policy_file *file, const char *path)
{
	const struct spill_ini_taker taker = {take_option,  take_rule,     file,
	                                      take_section, take_rule_key, take_error};
	char problem[SPILL_PATH_MAX + 1024];
	size_t length;
	char *data;

	cli_policy_file_release(file);
	file->path = path;
	switch (spill_config_file_read(path, &data, &length, problem, sizeof(problem))) {
	case SPILL_CONFIG_FILE_ABSENT:
		snprintf(problem, sizeof(problem), "%s: no such file, or its folder cannot be read", path);
		add_message(&file->errors, 0, problem);
		return false;
	case SPILL_CONFIG_FILE_BAD:
		add_message(&file->errors, 0, problem);
		return false;
	case SPILL_CONFIG_FILE_READ:
		break;
	}
	if (spill_ini_read(path, data, length, &taker, problem, sizeof(problem)))
		cli_check_dead_keys(file);
	end_section(file);
	free(data);
	return !file->errors.count;
}
