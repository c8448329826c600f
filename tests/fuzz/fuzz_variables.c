/*
 * Variables of the environment, each with its NUL, as the library reads them at a program's start. What is accepted can be written and
 * means the same again. What is not is named, and the value of an unknown name is never shown.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config.h"
#include "fuzz.h"
#include "options.h"

#define MOST 64
#define SECRET "s3cr3t-m4rk3r"

/* They would lead to files of this machine. */
static bool leads_away(const char *variable)
{
	static const char *const names[] = {"HOME=", "XDG_", "SPILL_POLICY="};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (!strncmp(variable, names[i], strlen(names[i])))
			return true;
	}
	return false;
}

static char *copy_of(const char *text, size_t length)
{
	char *copy = strndup(text, length);

	fuzz_require(copy != NULL, "no memory");
	return copy;
}

/* Copies of exactly their size, so that a byte too many is seen. */
static void take_variables(const uint8_t *data, size_t size, char *list[MOST + 1])
{
	const char *text = (const char *)data, *end = text + size;
	size_t count = 0;

	while (text < end && count < MOST) {
		size_t length = strnlen(text, (size_t)(end - text));

		list[count] = copy_of(text, length);
		if (leads_away(list[count]))
			free(list[count]);
		else
			count++;
		text += length + 1;
	}
	list[count] = NULL;
}

static void forget_variables(char *list[MOST + 1])
{
	for (; *list; list++)
		free(*list);
}

/* `lines`: it may have newlines. */
static void check_text(const char *text, size_t size, bool lines)
{
	fuzz_require(memchr(text, '\0', size) != NULL, "a text ends");
	for (; *text; text++)
		fuzz_require((unsigned char)*text >= 0x20 || (lines && *text == '\n'),
		             "a control character in a message");
}

static void check_option(const struct spill_log_option *option)
{
	struct spill_policy policy;
	struct spill_error error;
	char section[64] = "", again[SPILL_PATH_MAX];
	const char *point = strrchr(option->name, '.');
	int slot;

	fuzz_require(point && (size_t)(point - option->name) < sizeof(section), "an option of a section");
	memcpy(section, option->name, (size_t)(point - option->name));
	slot = spill_option_find(section, point + 1, &error);
	fuzz_require(slot >= 0, "an option of the table");
	spill_policy_default(&policy);
	if (strlen(option->value) + 1 == sizeof(option->value))
		return; /* a path may be cut */
	fuzz_require(!spill_option_put(&policy, (unsigned)slot, option->value, &error),
	             "a printed value is refused");
	spill_option_format(&policy, (unsigned)slot, again, sizeof(again));
	fuzz_require(!strcmp(again, option->value), "a printed value means something else");
}

static void load(struct spill_config *config, char **list)
{
	char **own = environ;

	environ = list;
	spill_config_load(config, "program");
	environ = own;
	check_text(config->problem, sizeof(config->problem), false);
	check_text(config->warning, sizeof(config->warning), true);
	fuzz_require(!config->hidden[0], "no rules, so none is hidden");
	fuzz_require(!config->problem[0] || config->policy.mode != SPILL_MODE_SPILL,
	             "a problem lets nothing spill");
}

/* The value of each unknown name becomes a word that must not come back. */
static void check_secrets(char *list[MOST + 1])
{
	static struct spill_config config;
	struct spill_error error;

	for (size_t i = 0; list[i]; i++) {
		char *equals = strchr(list[i], '='), *secret;

		if (!equals)
			continue;
		*equals = '\0';
		if (!strcmp(list[i], "SPILL_LOG") || spill_option_find_variable(list[i], &error) != -1) {
			*equals = '=';
			continue;
		}
		secret = malloc(strlen(list[i]) + sizeof("=" SECRET));
		fuzz_require(secret != NULL, "no memory");
		strcat(strcat(strcpy(secret, list[i]), "="), SECRET);
		free(list[i]);
		list[i] = secret;
	}
	load(&config, list);
	fuzz_require(!strstr(config.problem, SECRET) && !strstr(config.warning, SECRET),
	             "a value of an unknown name is shown");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct spill_config config;
	char *list[MOST + 1];

	if (size && memmem(data, size, SECRET, strlen(SECRET)))
		return 0;
	take_variables(data, size, list);
	load(&config, list);
	fuzz_require(config.option_count <= sizeof(config.options) / sizeof(config.options[0]),
	             "a list that ends");
	for (unsigned i = 0; i < config.option_count; i++)
		check_option(&config.options[i]);
	check_secrets(list);
	forget_variables(list);
	return 0;
}
