/* spill replay: decides recorded runs under another policy or on another card. */
#include <string.h>

#include "call.h"
#include "cli.h"
#include "replay.h"

bool cli_replay_fits(const struct cli_replay_run *run)
{
	return run->judged && !run->refused;
}

bool cli_replay_fits_all(const struct cli_replay *replay)
{
	bool fits = !replay->report.unread;

	for (size_t i = 0; i < replay->count; i++)
		fits &= cli_replay_fits(&replay->runs[i]);
	return fits;
}

bool cli_replay_as_recorded(const struct cli_replay_options *options)
{
	return !options->policy && !options->profile;
}

const char *cli_where_name(enum cli_where where)
{
	static const char *const names[CLI_WHERES] = {
	    [CLI_WHERE_DEVICE] = "device", [CLI_WHERE_LEFT] = "moved out",
	    [CLI_WHERE_SPLIT] = "split",   [CLI_WHERE_MANAGED] = "managed",
	    [CLI_WHERE_HOST] = "host",     [CLI_WHERE_NOWHERE] = "out of memory",
	};

	return names[where];
}

/* Reads "split,move", the abilities that devices lack. vmm means both. */
static bool read_without(const char *words, unsigned *without)
{
	static const struct {
		const char *word;
		unsigned what;
	} abilities[] = {
	    {"vmm", SPILL_CAN_SPLIT | SPILL_CAN_MOVE},
	    {"move", SPILL_CAN_MOVE},
	    {"managed", SPILL_CAN_MANAGED},
	    {"host", SPILL_CAN_HOST},
	};

	while (*words) {
		size_t length = strcspn(words, ","), i = 0;

		while (i < 4 &&
		       (strlen(abilities[i].word) != length || memcmp(abilities[i].word, words, length)))
			i++;
		if (i == 4)
			return false;
		*without |= abilities[i].what;
		words += length + (words[length] == ',');
	}
	return true;
}

static void read_option(struct cli_call *call, struct cli_replay_options *options, bool *json)
{
	switch ((unsigned)call->option) {
	case CLI_replay_policy:
		options->policy = call->value;
		break;
	case CLI_replay_profile:
		options->profile = call->value;
		break;
	case CLI_replay_vram:
		cli_call_size(call, &options->vram);
		if (!call->over && !options->vram)
			cli_call_refuse(call, "bad --vram '%s': a card has some memory", call->value);
		break;
	case CLI_replay_other:
		cli_call_size(call, &options->other);
		break;
	case CLI_replay_host:
		cli_call_size(call, &options->host);
		break;
	case CLI_replay_margin:
		cli_call_size(call, &options->margin);
		break;
	case CLI_replay_list:
		options->list = true;
		break;
	case CLI_replay_without:
		if (!read_without(call->value, &options->without))
			cli_call_refuse(call, "bad --without '%s': a list of vmm, move, managed, host",
			                call->value);
		break;
	default:
		*json = true;
	}
}

static int print_replay(struct cli_replay *replay, bool json)
{
	if (json)
		cli_replay_json(replay);
	else
		cli_replay_text(replay);
	return cli_replay_fits_all(replay) ? CLI_FINE : CLI_FINDINGS;
}

static int replay_all(struct cli_replay *replay, const struct cli_call *call, bool json)
{
	struct cli_trace trace = {.command = "replay", .visitor = &cli_replay_visitor, .data = replay};
	int status;

	replay->report.summaries.names = &trace.names;
	for (int i = 0; i < call->count; i++)
		replay->report.unread |= !cli_trace_read(&trace, call->operand[i]);
	/* An [app NAME] for the log's program may add too many rules. */
	if (replay->problem)
		status = cli_usage("replay", "%s", replay->problem);
	else
		status = cli_finish(print_replay(replay, json));
	cli_replay_free(replay);
	cli_trace_free(&trace);
	return status;
}

int cli_replay(int argc, char **argv)
{
	struct cli_replay replay = {
	    .options = {.other = SPILL_UNLIMITED, .host = SPILL_UNLIMITED, .margin = CLI_MARGIN}};
	struct cli_call call = cli_call(argc, argv);
	bool json = false;

	while (cli_call_next(&call))
		read_option(&call, &replay.options, &json);
	if (call.over)
		return call.status;
	if (!call.count)
		return cli_usage(argv[0], "which log, or which folder of logs?");
	if (replay.options.policy && replay.options.profile)
		return cli_usage(argv[0], "under which policy? --policy FILE or --profile NAME, one of them");
	/* Check the policy before reading a long log. */
	if (!cli_replay_as_recorded(&replay.options))
		cli_replay_policy(&replay.options, "", NULL, &replay.problem);
	if (replay.problem)
		return cli_usage(argv[0], "%s", replay.problem);
	return replay_all(&replay, &call, json);
}
