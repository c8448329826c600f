/* A policy file as `spill check` reads it: its contents with their lines, and its mistakes. */
#ifndef SPILL_CLI_POLICY_FILE_H
#define SPILL_CLI_POLICY_FILE_H

#include "ini_file.h"
#include "rule_option.h"

/* Messages in the order of their lines. */
struct cli_messages {
	struct cli_message {
		unsigned line;
		char *text; /* FILE:LINE… */
	} * list;
	size_t count, size;
};

/* A key of an option. */
struct cli_set_option {
	unsigned slot, line;
	char *value;
	char *app; /* NAME of its section [app NAME], or NULL */
};

struct cli_set_rule {
	struct spill_rule rule;
	unsigned line;
	unsigned key_line[SPILL_RULE_OPTIONS]; /* of the keys that it has */
};

struct cli_policy_file {
	const char *path;
	struct cli_set_option *options;
	size_t option_count, option_size;
	struct cli_set_rule rules[SPILL_RULES];
	unsigned rule_count;
	/* The library refuses a file with an error. A warning is about a key that does not do what it says. */
	struct cli_messages errors, warnings;

	/* While the file is read: the head of the section, and the number of its keys. */
	char section[64];
	unsigned section_line, keys;
	unsigned key_line[SPILL_RULE_OPTIONS]; /* of a rule */
};

/* Reads the file and looks for mistakes. False: it has errors. Releases what `file` had before. */
bool cli_policy_file_read(struct cli_policy_file *file, const char *path);
void cli_policy_file_release(struct cli_policy_file *file);

/* Adds the warning "FILE:LINE: …". */
void cli_policy_file_warn(struct cli_policy_file *file, unsigned line, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/*
 * value_mistakes.c: warns of a value that does not mean what its user thinks. `name` is the key in
 * sentences, such as "device.limit" or "cap of rule a".
 */
void cli_check_value(struct cli_policy_file *file, const struct spill_option *row, const char *name,
                     const char *value, unsigned line);

/* The same for NAME of `[app NAME]`. */
void cli_check_app_name(struct cli_policy_file *file, const char *name, unsigned line);

/* dead_keys.c: warns of keys that have no effect because of others. pre: the file has no error */
void cli_check_dead_keys(struct cli_policy_file *file);

#endif
