/*
 * Any bytes as a log for `spill replay`. A first line "spill replay --vram=1GiB …" has options, the rest is the log. What is printed
 * steers no terminal, and no sum wraps around. Then the recording is decided again, request by request, and the accounts of the model
 * must hold after each.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cli.h"
#include "fuzz.h"
#include "fuzz_printed.h"
#include "minmax.h"
#include "replay.h"
#include "shared_chunks.h"

#define MOST_WORDS 8

/* -- the accounts ----------------------------------------------------------------------------- */

/* What the allocations that are alive make of them. */
struct accounts {
	struct {
		uint64_t whole, small, managed, movable, away;
	} devices[SPILL_DEVICES];
	uint64_t host, rules[SPILL_RULES], movable_count;
};

static void add_slot(struct accounts *accounts, const struct cli_model_slot *slot)
{
	accounts->host += slot->charged_host;
	if (slot->rule >= 0)
		accounts->rules[slot->rule] += slot->charged_rule;
	if (slot->device < 0 || slot->device >= SPILL_DEVICES)
		return;
	accounts->devices[slot->device].whole += slot->charged - slot->small;
	accounts->devices[slot->device].small += slot->small;
	if (slot->place == SPILL_PLACE_MANAGED)
		accounts->devices[slot->device].managed += slot->held.device;
	if (!slot->chunked)
		return;
	fuzz_require(slot->held.device + slot->held.host == slot->range, "no chunk is lost");
	accounts->devices[slot->device].movable += slot->held.device;
	accounts->devices[slot->device].away += slot->held.host;
	accounts->movable_count++;
}

static void check_device(const struct cli_model *model, const struct accounts *accounts, unsigned device)
{
	const struct cli_model_device *state = &model->devices[device];
	const struct cli_card *card = &model->setting->cards[device];

	fuzz_require(state->whole == accounts->devices[device].whole &&
	                 state->small == accounts->devices[device].small,
	             "a device holds its allocations");
	fuzz_require(state->managed == accounts->devices[device].managed && state->resident <= state->managed,
	             "and the managed part of it");
	fuzz_require(state->movable == accounts->devices[device].movable &&
	                 state->away == accounts->devices[device].away,
	             "and what can move");
	fuzz_require(card->limit == SPILL_UNLIMITED || state->whole + state->small <= card->limit,
	             "not beyond its limit");
	fuzz_require(state->whole - state->managed + state->resident + state->blocks.made * CLI_GRANULE <=
	                 card->total - spill_min(card->total, card->other),
	             "not beyond the card");
}

static void check_accounts(const struct cli_model *model)
{
	static struct accounts accounts;

	memset(&accounts, 0, sizeof(accounts));
	for (size_t i = 0; i < model->slot_count; i++) {
		if (model->slots[i].live)
			add_slot(&accounts, &model->slots[i]);
	}
	for (unsigned device = 0; device < SPILL_DEVICES; device++) {
		check_device(model, &accounts, device);
		for (unsigned place = 0; place < SPILL_PLACES; place++)
			accounts.host += model->devices[device].pools[place].made * SPILL_SHARED_CHUNKS_CHUNK;
	}
	fuzz_require(model->host == accounts.host, "the host holds its allocations");
	fuzz_require(model->movable_count == accounts.movable_count, "all that can move is listed");
	fuzz_require(!memcmp(model->rule_used, accounts.rules, sizeof(accounts.rules)), "rules are charged");
}

/* All of a request is somewhere, and not more than its rounding besides. */
static void check_answer(const struct cli_ask *ask, const struct cli_answer *answer)
{
	uint64_t held = answer->held.device + answer->held.host;

	if (!answer->served || ask->kind == CLI_ASK_FREE)
		return;
	held = answer->place == SPILL_PLACE_MANAGED ? answer->held.managed : held;
	fuzz_require(held >= ask->bytes && held - ask->bytes < CLI_GRANULE,
	             "a request is placed, and nothing else");
}

/* -- a run decided again ---------------------------------------------------------------------- */

static void decide(struct cli_model *model, const struct cli_recording *recording)
{
	for (size_t i = 0; i < recording->ask_count; i++) {
		const struct cli_ask *ask = &recording->asks[i];
		struct cli_answer answer;

		fuzz_require(ask->slot < model->slot_count && ask->allocation < recording->alloc_count &&
		                 ask->site < recording->site_count,
		             "a request's numbers are in their tables");
		answer = cli_model_take(model, ask);
		check_answer(ask, &answer);
		check_accounts(model);
		if (answer.served)
			cli_model_settle(model, ask);
		check_accounts(model);
	}
	for (uint32_t slot = 0; slot < model->slot_count; slot++)
		cli_model_take(model, &(struct cli_ask){.kind = CLI_ASK_FREE, .slot = slot});
	check_accounts(model);
	fuzz_require(!model->movable_count, "what is freed is gone");
	for (unsigned device = 0; device < SPILL_DEVICES; device++) {
		fuzz_require(!model->devices[device].blocks.made, "no block is left");
		for (unsigned place = 0; place < SPILL_PLACES; place++)
			fuzz_require(model->devices[device].pools[place].made <= 1,
			             "one shared chunk is kept");
	}
}

/* On the cards of the run, under its own policy. */
static void decide_run(const struct cli_replay *replay, const struct cli_replay_run *run)
{
	struct cli_model_setting setting = run->setting;
	struct cli_model model;
	struct cli_site *sites;
	char rules[256];

	sites = cli_replay_sites(run->recording, replay->recorded, run->exe, rules, sizeof(rules));
	setting.policy = replay->recorded;
	setting.sites = sites;
	for (int device = 0; device < SPILL_DEVICES; device++) {
		struct cli_card *card = &setting.cards[device];

		card->limit = spill_policy_device_limit(setting.policy, device, card->total);
		card->other = run->recording->devices[device].other;
	}
	cli_model_begin(&model, &setting, run->recording->slots);
	decide(&model, run->recording);
	cli_model_free(&model);
	free(sites);
}

static void end_run(void *data, const struct cli_trace_end *end)
{
	struct cli_replay *replay = data;

	if (!replay->problem && replay->recorded)
		decide_run(replay, &replay->runs[replay->count - 1]);
	cli_replay_visitor.end(data, end);
}

/* As a command: it complains of damaged lines. */
static int check_model(int argc, char **argv)
{
	struct cli_trace_visitor visitor = cli_replay_visitor;
	struct cli_replay replay = {.options = {.other = SPILL_UNLIMITED, .host = SPILL_UNLIMITED}};
	struct cli_trace trace = {.command = "replay", .visitor = &visitor, .data = &replay};

	visitor.end = end_run;
	replay.report.summaries.names = &trace.names;
	cli_trace_read(&trace, argv[1]);
	cli_replay_free(&replay);
	cli_trace_free(&trace);
	return 0;
}

/* -- the input -------------------------------------------------------------------------------- */

/* Options that name no file. */
static bool is_option(const char *word)
{
	static const char *const options[] = {
	    "--vram=", "--other=", "--host=", "--margin=", "--without=", "--profile=", "--list"};

	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
		if (!strncmp(word, options[i], strlen(options[i])))
			return true;
	}
	return false;
}

/* Takes the first line if it is a command. Returns what is left of the log. */
static const char *take_options(const char *log, const char *end, const char **words)
{
	static char line[512];
	static const char begin[] = "spill replay ";
	const char *newline = memchr(log, '\n', (size_t)(end - log));
	size_t length = newline ? (size_t)(newline - log) : 0, count = 0;

	if (length < strlen(begin) || length >= sizeof(line) || memcmp(log, begin, strlen(begin)) != 0)
		return log;
	memcpy(line, log, length);
	line[length] = '\0';
	for (char *word = strtok(line, " "); word && count < MOST_WORDS; word = strtok(NULL, " ")) {
		if (is_option(word))
			words[count++] = word;
	}
	return newline + 1;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *log = (const char *)data, *end = log + size, *words[MOST_WORDS + 4] = {"replay"};
	int fd = memfd_create("log", MFD_CLOEXEC);
	char path[64];
	size_t count = 1;

	if (size)
		log = take_options(log, end, words + 1);
	fuzz_require(fd >= 0 && write(fd, log, (size_t)(end - log)) == end - log, "a file to read");
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	while (words[count])
		count++;
	words[count] = path;
	/* One of both forms: each decides the run some forty times. */
	if (size % 2)
		words[count + 1] = "--json";
	struct fuzz_printed printed = fuzz_run(cli_replay, words);
	if (size % 2 && printed.length) { /* an option or the recorded policy may be refused */
		fuzz_check_json(printed);
		fuzz_check_figures(printed, (const char *)data, size);
	}
	fuzz_run(check_model, (const char *const[]){"model", path, NULL});
	close(fd);
	return 0;
}
