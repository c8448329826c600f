#include "summary.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "oom_report.h"
#include "amount.h"
#include "cli.h"
#include "life.h"
#include "policy.h"

/* An option of the start line's policy, or NULL. */
static const struct spill_record_option *find_option(const struct spill_record_start *start, const char *name)
{
	for (unsigned i = 0; i < start->option_count; i++) {
		if (!strcmp(start->policy[i].name, name))
			return &start->policy[i];
	}
	return NULL;
}

static const char *option_value(const struct spill_record_start *start, const char *name)
{
	const struct spill_record_option *option = find_option(start, name);

	return option ? option->value : NULL;
}

static bool has_cap(const struct spill_record_start *start)
{
	for (unsigned i = 0; i < start->option_count; i++) {
		const struct spill_record_option *entry = &start->policy[i];

		if (entry->name && entry->value && spill_record_rule(entry) &&
		    (!strncmp(entry->value, "cap = ", 6) || strstr(entry->value, "; cap = ")))
			return true;
	}
	return false;
}

struct cli_device *cli_summary_device(struct cli_summary *summary, int device)
{
	struct cli_device *row;

	for (size_t i = 0; i < summary->device_count; i++) {
		if (summary->devices[i].device == device)
			return &summary->devices[i];
	}
	summary->devices =
	    cli_grow(summary->devices, summary->device_count, &summary->device_size, sizeof(*row));
	row = &summary->devices[summary->device_count++];
	*row = (struct cli_device){.device = device, .limit = SPILL_UNLIMITED};
	return row;
}

/* A value of [device N] or [device], for a device of `bytes`. */
static uint64_t amount_of(const struct spill_record_start *start, const char *key, int device, uint64_t bytes,
                          uint64_t otherwise)
{
	char name[64];
	const char *value;
	struct spill_amount amount;
	size_t entry;

	snprintf(name, sizeof(name), "device %d.%s", device, key);
	value = option_value(start, name);
	snprintf(name, sizeof(name), "device.%s", key);
	if (!value)
		value = option_value(start, name);
	if (!value || spill_amount_parse(value, SPILL_ALLOW_PERCENT | SPILL_ALLOW_NONE, &amount, &entry))
		return otherwise;
	return spill_amount_resolve(amount, bytes, otherwise);
}

static void begin_devices(struct cli_summary *summary, const struct spill_record_start *start)
{
	for (unsigned i = 0; i < start->device_count; i++) {
		const struct spill_record_device *source = &start->devices[i];
		struct cli_device *device;

		if (source->device < 0 || source->device >= SPILL_DEVICES)
			continue; /* no device: a log may say anything */
		device = cli_summary_device(summary, source->device);
		if (device->name)
			continue;
		device->name = cli_strdup(source->name);
		device->uuid = cli_strdup(source->uuid);
		device->bytes = source->bytes;
		device->limit = amount_of(start, "limit", source->device, source->bytes, SPILL_UNLIMITED);
		device->reserve = amount_of(start, "reserve", source->device, source->bytes, 0);
	}
}

/* True if spill.mode is observe because the policy was refused (docs/log-format.md, start). */
static bool is_refused(const struct spill_record_start *start)
{
	const struct spill_record_option *mode = find_option(start, "spill.mode");

	return mode && !strcmp(mode->source, "problem");
}

bool cli_follow_is_off(const struct spill_record_start *start)
{
	const char *follow = option_value(start, "movable.follow");

	return follow && !strcmp(follow, "off");
}

/* The time "2026-11-21T03:50:51.123456Z" in microseconds since 1970; 0 if it is none. */
static int64_t wall_of(const char *time)
{
	struct tm parts = {0};
	const char *rest = time ? strptime(time, "%Y-%m-%dT%H:%M:%S.", &parts) : NULL;

	if (!rest || strspn(rest, "0123456789") != 6 || strcmp(rest + 6, "Z") != 0)
		return 0;
	return (int64_t)timegm(&parts) * 1000000 + strtol(rest, NULL, 10);
}

static void begin_summary(void *data, const char *path, unsigned long line,
                          const struct spill_record_start *start)
{
	struct cli_summaries *summaries = data;
	struct cli_summary *summary;
	const char *level;

	summaries->runs = cli_grow(summaries->runs, summaries->count, &summaries->size, sizeof(*summary));
	summary = &summaries->runs[summaries->count++];
	*summary = (struct cli_summary){.number = summaries->count - 1,
	                                .path = cli_strdup(path),
	                                .line = line,
	                                .started = start != NULL,
	                                .all_told = true};
	if (!start)
		return;
	level = option_value(start, "log.level");
	summary->time = cli_strdup(start->time);
	summary->host = cli_strdup(start->host);
	summary->program = cli_strdup(start->program);
	summary->version = cli_strdup(start->version);
	summary->backend = cli_strdup(start->backend);
	summary->rank = cli_strdup(spill_ranks_rank(&start->ranks));
	summary->job = cli_strdup(spill_ranks_job(&start->ranks));
	summary->step = cli_strdup(start->ranks.of[SPILL_RANK_SLURM_STEP_ID]);
	summary->wall_us = wall_of(start->time);
	summary->mode = cli_strdup(option_value(start, "spill.mode"));
	summary->pid = start->pid;
	summary->gone = cli_writer_is_gone(start, path);
	summary->driver = start->driver;
	summary->all_told = !level || strcmp(level, "spills");
	summary->capped = has_cap(start);
	summary->follow_off = cli_follow_is_off(start);
	summary->refused = is_refused(start);
	begin_devices(summary, start);
	cli_run_files_begin(&summary->files, start);
}

static struct cli_summary *current_summary(void *data)
{
	struct cli_summaries *summaries = data;

	return &summaries->runs[summaries->count - 1];
}

static void add_event(void *data, const struct cli_event *event)
{
	struct cli_summaries *summaries = data;
	struct cli_summary *summary = current_summary(data);

	if (event->time_us > summary->ended_us)
		summary->ended_us = event->time_us;
	if (event->time_us >= summary->last.time_us)
		summary->last = (struct cli_last_event){event->kind, event->bytes, event->time_us};
	cli_summary_event(summary, summaries->names, event);
}

/* The entry for the next final one. Keeps the first ones and the last ones. */
static struct spill_record_oom *next_oom_slot(struct cli_ooms *ooms)
{
	uint64_t entry = ooms->count++;

	/* Allocated on demand: it is most of a run's size, and few runs need it. */
	if (!ooms->list)
		ooms->list = cli_realloc(NULL, 2 * CLI_OOMS_EACH, sizeof(ooms->list[0]));
	if (entry < 2 * CLI_OOMS_EACH)
		return &ooms->list[entry];
	memmove(&ooms->list[CLI_OOMS_EACH], &ooms->list[CLI_OOMS_EACH + 1],
	        (CLI_OOMS_EACH - 1) * sizeof(ooms->list[0]));
	return &ooms->list[2 * CLI_OOMS_EACH - 1];
}

static void intern_text(struct cli_names *names, const char **text)
{
	const struct cli_name *name = cli_names_get(names, *text);

	*text = name ? name->text : NULL;
}

static void intern_groups(struct cli_names *names, struct spill_group *groups, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		intern_text(names, &groups[i].name);
		intern_text(names, &groups[i].requester);
	}
}

/* Of those that the program asks for again their number is enough: they must not hide what ended the job. */
static void add_honest(struct cli_ooms *ooms, uint64_t time_us)
{
	if (!ooms->honest++)
		ooms->honest_first_us = time_us;
	ooms->honest_last_us = time_us;
}

static void keep_oom(struct cli_ooms *ooms, struct cli_names *names, const struct spill_record_oom *source)
{
	struct spill_record_oom *oom = next_oom_slot(ooms);

	*oom = *source;
	intern_text(names, &oom->api);
	intern_text(names, &oom->caller);
	intern_text(names, &oom->requester);
	intern_text(names, &oom->rule);
	intern_text(names, &oom->refused_by);
	intern_text(names, &oom->would);
	for (unsigned i = 0; i < oom->attempts; i++) {
		intern_text(names, &oom->tried[i].place);
		intern_text(names, &oom->tried[i].error);
	}
	for (unsigned i = 0; i < oom->holders; i++) {
		intern_text(names, &oom->top[i].api);
		intern_text(names, &oom->top[i].caller);
		intern_text(names, &oom->top[i].requester);
	}
	intern_groups(names, oom->by_caller, oom->callers);
	intern_groups(names, oom->by_place, oom->places);
}

/* Keeps the first problem of the policy, as the library tells it on stderr. */
static void add_problem(struct cli_summary *summary, const struct spill_record_note *note)
{
	size_t effect = sizeof(SPILL_PROBLEM_EFFECT) - 1, length = note->text ? strlen(note->text) : 0;

	if (!summary->refused || summary->problem || !length || !note->code || strcmp(note->code, "policy"))
		return;
	summary->problem = cli_strdup(note->text);
	if (length > effect && !strcmp(note->text + length - effect, SPILL_PROBLEM_EFFECT))
		summary->problem[length - effect] = '\0';
}

static void add_note(struct cli_summary *summary, struct cli_names *names,
                     const struct spill_record_note *note)
{
	add_problem(summary, note);
	summary->lost += note->code && !strcmp(note->code, "log-lost");
	if (summary->note_count++ < CLI_NOTES)
		summary->notes[summary->note_count - 1] = (struct cli_note){
		    note->time_us, cli_names_get(names, note->code), cli_strdup(note->text)};
}

/* Adds a drop line's sums (docs/log-format.md, drop). */
static void add_drop(struct cli_summary *summary, const struct spill_record_drop *drop)
{
	const struct spill_sum *sums = drop->sums;
	struct spill_totals *totals = &summary->totals;

	for (unsigned i = 0; i < SPILL_DROPS_COUNT; i++) {
		summary->left_out[i].count += sums[i].count;
		spill_bytes_add(&summary->left_out[i].bytes, &sums[i].bytes);
	}
	totals->allocs += sums[SPILL_DROP_ALLOC].count + sums[SPILL_DROP_SPILL].count;
	totals->spills += sums[SPILL_DROP_SPILL].count;
	totals->spilled.host += sums[SPILL_DROP_SPILL].bytes.host;
	totals->spilled.managed += sums[SPILL_DROP_SPILL].bytes.managed;
	totals->frees += sums[SPILL_DROP_FREE].count;
	totals->demotions += sums[SPILL_DROP_DEMOTE].count;
	totals->demoted += sums[SPILL_DROP_DEMOTE].bytes.host;
	totals->promotions += sums[SPILL_DROP_PROMOTE].count;
	totals->promoted += sums[SPILL_DROP_PROMOTE].bytes.device;
	spill_bytes_add(&totals->live, &sums[SPILL_DROP_ALLOC].bytes);
	spill_bytes_add(&totals->live, &sums[SPILL_DROP_SPILL].bytes);
	spill_bytes_take(&totals->live, &sums[SPILL_DROP_FREE].bytes);
	spill_bytes_take(&totals->live, &summary->unannounced);
	summary->unannounced = (struct spill_bytes){0};
	totals->live.device += sums[SPILL_DROP_PROMOTE].bytes.device - sums[SPILL_DROP_DEMOTE].bytes.host;
	totals->live.host += sums[SPILL_DROP_DEMOTE].bytes.host - sums[SPILL_DROP_PROMOTE].bytes.device;
	totals->live = (struct spill_bytes){cli_not_below_zero(totals->live.device),
	                                    cli_not_below_zero(totals->live.host),
	                                    cli_not_below_zero(totals->live.managed)};
	totals->peak = drop->peak;
	summary->drop_told = drop->away.wanted; /* missing in logs of older versions */
	if (summary->drop_told)
		totals->away = drop->away;
}

static void set_exit(struct cli_summary *summary, struct cli_names *names,
                     const struct spill_record_exit *end)
{
	if (summary->exited)
		return;
	summary->exited = true;
	summary->how = cli_names_get(names, end->how);
	summary->exit_totals = end->totals;
	summary->run_us = end->time_us;
}

static void add_record(void *data, const struct spill_record *record)
{
	struct cli_summary *summary = current_summary(data);
	struct cli_names *names = ((struct cli_summaries *)data)->names;

	if (record->time_us > summary->ended_us)
		summary->ended_us = record->time_us;
	if (record->kind == SPILL_KIND_OOM && !summary->exited) {
		summary->totals.ooms++;
		if (spill_oom_is_final(record->oom.refused_by))
			keep_oom(&summary->ooms, names, &record->oom);
		else
			add_honest(&summary->ooms, record->oom.time_us);
	} else if (record->kind == SPILL_KIND_FILE) {
		cli_run_files_add(&summary->files, &record->file);
	} else if (record->kind == SPILL_KIND_NOTE) {
		add_note(summary, names, &record->note);
	} else if (record->kind == SPILL_KIND_DROP) {
		add_drop(summary, &record->drop);
	} else if (record->kind == SPILL_KIND_USE) {
		summary->totals.away.in_place = record->use.away.in_place;
	} else if (record->kind == SPILL_KIND_EXIT) {
		set_exit(summary, names, &record->exit);
	}
}

/* The program's own count is exact, also where the log lacks lines. Old logs do not have it. */
static struct spill_story story_of(const struct cli_summary *summary)
{
	const struct spill_sum *left = summary->left_out;
	bool exact = summary->exited && summary->exit_totals.away.wanted;
	bool lacks = summary->lost || summary->end.missing || !summary->all_told;
	struct spill_totals totals = summary->totals;
	struct spill_story story;

	if (!summary->drop_told)
		lacks |= left[SPILL_DROP_SPILL].count || left[SPILL_DROP_DEMOTE].count ||
		         left[SPILL_DROP_PROMOTE].count;
	if (exact) {
		totals.away = summary->exit_totals.away;
		totals.peak.device = summary->exit_totals.peak.device;
	}
	story = spill_story_of(&totals, summary->run_us);
	story.at_least = !exact && lacks;
	story.follow_off = summary->follow_off;
	return story;
}

/* The process writes to the last run of a file only. */
static enum cli_life life_of(const struct cli_summary *summary, int pid)
{
	return cli_life_of(summary->end.path, summary->end.last ? pid : 0, summary->gone);
}

static void finish_summary(void *data, const struct cli_trace_end *end)
{
	const struct cli_summaries *summaries = data;
	struct cli_summary *summary = current_summary(data);

	summary->end = *end;
	if (!summary->exited)
		summary->life = life_of(summary, summaries->pid ? summaries->pid : summary->pid);
	summary->end.path = NULL;
	if (!summary->exited)
		summary->run_us = summary->ended_us;
	summary->story = story_of(summary);
	cli_live_free(&summary->live);
	for (unsigned view = 0; view < CLI_VIEWS; view++)
		cli_table_sort(&summary->views[view]);
	cli_table_sort(&summary->demoted);
	cli_table_sort(&summary->promoted);
}

const struct cli_trace_visitor cli_summary_visitor = {begin_summary, add_event, add_record, finish_summary};

static void free_summary(struct cli_summary *summary)
{
	char *texts[] = {summary->path,    summary->time,    summary->host, summary->program,
	                 summary->version, summary->backend, summary->rank, summary->mode,
	                 summary->problem, summary->job,     summary->step};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		free(texts[i]);
	for (size_t i = 0; i < summary->device_count; i++) {
		free(summary->devices[i].name);
		free(summary->devices[i].uuid);
	}
	free(summary->devices);
	cli_run_files_free(&summary->files);
	for (unsigned view = 0; view < CLI_VIEWS; view++)
		cli_table_free(&summary->views[view]);
	free(summary->ooms.list);
	cli_table_free(&summary->demoted);
	cli_table_free(&summary->promoted);
	for (unsigned i = 0; i < CLI_NOTES; i++)
		free(summary->notes[i].text);
}

void cli_summaries_free(struct cli_summaries *summaries)
{
	for (size_t i = 0; i < summaries->count; i++)
		free_summary(&summaries->runs[i]);
	free(summaries->runs);
	*summaries = (struct cli_summaries){0};
}

/* -- totals against the exit line ------------------------------------------------------------- */

#define FIGURE(name, field) \
	{ \
		name, offsetof(struct spill_totals, field) \
	}
#define SUMS(name) \
	FIGURE(#name ".device_bytes", name.device), FIGURE(#name ".host_bytes", name.host), \
	    FIGURE(#name ".managed_bytes", name.managed)

/* Figures that need all lines come last: log.level = spills has only the first ones. */
static const struct {
	const char *name;
	size_t offset;
} figures[CLI_DIFFERENCES] = {
    FIGURE("spills", spills),
    FIGURE("ooms", ooms),
    FIGURE("demotions", demotions),
    FIGURE("promotions", promotions),
    FIGURE("demoted_bytes", demoted),
    FIGURE("promoted_bytes", promoted),
    SUMS(spilled),
    FIGURE("away.peak_bytes", away.peak),
    FIGURE("away.moves_us", away.moves_us),
    FIGURE("allocs", allocs),
    FIGURE("frees", frees),
    SUMS(live),
    SUMS(peak),
    FIGURE("away.wanted_bytes", away.wanted),
};

#define WITHOUT_ROUTINE 11

static uint64_t *figure_of(struct spill_totals *totals, unsigned entry)
{
	return (uint64_t *)(void *)((char *)totals + figures[entry].offset);
}

const struct spill_record_oom *cli_summary_cause(const struct cli_summary *summary)
{
	uint64_t kept = cli_ooms_kept(&summary->ooms);

	return kept ? &summary->ooms.list[kept - 1] : NULL;
}

void cli_totals_add(struct spill_totals *sum, const struct spill_totals *totals)
{
	struct spill_totals added = *totals;

	for (unsigned i = 0; i < CLI_DIFFERENCES; i++)
		*figure_of(sum, i) += *figure_of(&added, i);
}

unsigned cli_summary_differences(const struct cli_summary *summary, struct cli_difference differences[])
{
	unsigned count = 0, most = summary->all_told ? CLI_DIFFERENCES : WITHOUT_ROUTINE;
	struct spill_totals lines = summary->totals, end = summary->exit_totals;

	if (!end.away.wanted) /* logs of older versions */
		end.away = lines.away;
	for (unsigned i = 0; summary->exited && !summary->end.missing && i < most; i++) {
		differences[count] =
		    (struct cli_difference){figures[i].name, *figure_of(&lines, i), *figure_of(&end, i)};
		count += differences[count].lines != differences[count].exit;
	}
	return count;
}
