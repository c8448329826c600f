/* Finds the smallest device.limit by deciding the run again with others. */
#include "replay.h"

/* The limit's precision. */
#define STEP CLI_GRANULE
/* The memory of a card with room for everything, without overflow in sums. */
#define BOUNDLESS ((uint64_t)1 << 60)
/* Larger refused requests are ignored: programs try them to see the failure. */
#define ABSURD ((uint64_t)1 << 48)

/* False: a request was out of memory. */
static bool runs_without_oom(struct cli_model *model, const struct cli_recording *recording)
{
	cli_model_reset(model);
	for (size_t i = 0; i < recording->ask_count && !model->refused; i++) {
		if (recording->asks[i].bytes >= ABSURD)
			continue;
		cli_model_take(model, &recording->asks[i]);
		cli_model_settle(model, &recording->asks[i]);
	}
	return !model->refused;
}

/* The smallest multiple of STEP with which the run fits. pre: it fits with `enough` */
static uint64_t find_least_limit(struct cli_model *model, const struct cli_recording *recording,
                                 uint64_t *limit, uint64_t enough)
{
	uint64_t fails = 0, runs = (enough + STEP - 1) / STEP;

	*limit = 0;
	if (runs_without_oom(model, recording))
		runs = 0;
	while (runs > fails + 1) {
		uint64_t middle = fails + (runs - fails) / 2;

		*limit = middle * STEP;
		if (runs_without_oom(model, recording))
			runs = middle;
		else
			fails = middle;
	}
	*limit = SPILL_UNLIMITED;
	return runs * STEP < enough ? runs * STEP : enough;
}

void cli_replay_limits(struct cli_replay_run *run)
{
	const struct cli_recording *recording = run->recording;
	struct cli_model_setting setting = run->setting;
	struct cli_model_device devices[SPILL_DEVICES];
	struct cli_model model;

	for (unsigned i = 0; i < SPILL_DEVICES; i++) {
		setting.cards[i].limit = SPILL_UNLIMITED;
		setting.cards[i].other = 0;
		if (setting.cards[i].total)
			setting.cards[i].total = BOUNDLESS;
	}
	cli_model_begin(&model, &setting, recording->slots);
	run->runs = runs_without_oom(&model, recording);
	for (unsigned i = 0; i < SPILL_DEVICES; i++)
		devices[i] = model.devices[i];
	for (int i = 0; i < SPILL_DEVICES; i++) {
		if (!devices[i].peak)
			continue;
		run->limits[run->limit_count++] = (struct cli_replay_limit){
		    .device = i,
		    .all = devices[i].peak,
		    .reserve =
		        cli_model_may_move(&model, i) ? spill_policy_device_reserve(setting.policy, i) : 0,
		    .least = run->runs ? find_least_limit(&model, recording, &setting.cards[i].limit,
		                                          devices[i].peak)
		                       : 0,
		};
	}
	cli_model_free(&model);
}
