/* Loads the other policy and applies it to the sites of a log. */
#include <string.h>

#include "files.h"
#include "hazards.h"
#include "replay.h"
#include "cli.h"
#include "text.h"

const struct spill_policy *cli_replay_policy(const struct cli_replay_options *options, const char *program,
                                             const char *rank, const char **problem)
{
	static struct spill_config config; /* too large for the stack */

	spill_config_load_only(&config, program, rank, options->policy, options->profile);
	*problem = config.problem[0] ? config.problem : NULL;
	return *problem ? NULL : &config.policy;
}

/* The library in "libfoo.so+0x1a2b". For the program itself, the path from the start line. */
static void caller_path(const struct cli_name *caller, const char *exe, char path[CLI_NAME_MOST + 1])
{
	const char *slash = exe ? strrchr(exe, '/') : NULL;

	path[0] = '\0';
	if (!caller)
		return;
	strncat(path, caller->text, cli_caller_object(caller->text));
	if (slash && !strcmp(slash + 1, path) && strlen(exe) <= CLI_NAME_MOST)
		strcpy(path, exe);
}

static unsigned retry_operations(const char *path)
{
	unsigned operations = 0;

	for (unsigned bit = SPILL_RETRY_PLAIN; bit <= SPILL_RETRY_STREAM_ORDERED; bit <<= 1) {
		if (spill_retrier_find(path, (enum spill_retry)bit))
			operations |= bit;
	}
	return operations;
}

/* Lists rules with a path in `caller`: the log has only names of libraries. */
static void list_path_rules(const struct spill_rules *rules, char *names, size_t size)
{
	struct spill_text text = spill_text_begin(names, size);

	for (unsigned i = 0; rules && i < rules->count; i++) {
		const struct spill_rule *rule = &rules->rule[i];

		if (rule->set & SPILL_RULE_HAS_CALLER && strchr(rule->caller, '/'))
			spill_text_format(&text, "%s%s", text.length ? ", " : "", rule->name);
	}
}

struct cli_site *cli_replay_sites(const struct cli_recording *recording, const struct spill_policy *policy,
                                  const char *exe, char *rules, size_t size)
{
	struct cli_site *sites = cli_realloc(NULL, recording->site_count + 1, sizeof(*sites));
	char path[CLI_NAME_MOST + 1];

	rules[0] = '\0';
	list_path_rules(policy->rules, rules, size);
	for (size_t i = 0; i < recording->site_count; i++) {
		const struct cli_recorded_site *site = &recording->sites[i];

		caller_path(site->caller, exe, path);
		sites[i] = (struct cli_site){
		    .rules = policy->rules
		                 ? spill_rules_of(policy->rules, site->api ? site->api->text : "", path)
		                 : 0,
		    .asks_again = retry_operations(path),
		    .known = site->caller != NULL && !site->summed,
		    .exports = spill_exporter_find(path) != NULL,
		};
	}
	return sites;
}
