/* spill top --json: prints one look as an object on a line (docs/commands.md). */
#include "json_out.h"
#include "top.h"

static void put_seconds(struct spill_json *json, const char *member, uint64_t us)
{
	spill_json_seconds(cli_json_key(json, member), us);
}

/* A rate, rounded to millionths. */
static void put_rate(struct spill_json *json, const char *member, bool known, double rate)
{
	if (known)
		put_seconds(json, member, (uint64_t)(rate * 1e6));
	else
		cli_json_text(json, member, NULL);
}

/* A size that may be unknown. */
static void put_size(struct spill_json *json, const char *member, uint64_t bytes, uint64_t unknown)
{
	if (bytes == unknown)
		cli_json_text(json, member, NULL);
	else
		cli_json_number(json, member, bytes);
}

static void put_decision(struct spill_json *json, const struct spill_live_page_decision *last)
{
	if (!last->count) {
		cli_json_text(json, "last_decision", NULL);
		return;
	}
	spill_json_object(cli_json_key(json, "last_decision"));
	cli_json_number(json, "count", last->count);
	put_seconds(json, "time", last->time_us);
	cli_json_text(json, "what", last->what);
	cli_json_number(json, "bytes", last->bytes);
	cli_json_number(json, "dev", last->device);
	cli_json_text(json, "place", last->place[0] ? last->place : NULL);
	cli_json_text(json, "reason", last->reason[0] ? last->reason : NULL);
	cli_json_text(json, "rule", last->rule[0] ? last->rule : NULL);
	cli_json_text(json, "api", last->api[0] ? last->api : NULL);
	cli_json_text(json, "caller", last->caller[0] ? last->caller : NULL);
	spill_json_object_end(json);
}

static void put_row(struct spill_json *json, const struct cli_top_row *row)
{
	static const char *const names[] = {
#define X(id, name, of) name,
	    SPILL_COUNTERS(X)
#undef X
	};
	const struct cli_top_process *process = row->process;

	spill_json_object(json);
	cli_json_number(json, "pid", (uint64_t)process->pid);
	cli_json_number(json, "pid_inside", process->head.pid);
	cli_json_number(json, "uid", process->uid);
	cli_json_text(json, "program", process->head.program);
	cli_json_text(json, "mode", process->head.mode);
	cli_json_text(json, "backend", process->head.backend);
	put_seconds(json, "since", process->head.start_us);
	cli_json_text(json, "log", process->head.log[0] ? process->head.log : NULL);
	cli_json_number(json, "device", row->number);
	cli_json_number(json, "dev", row->device->number);
	put_size(json, "limit", row->device->about.limit, UINT64_MAX);
	for (unsigned i = 0; i < SPILL_COUNTERS_COUNT; i++)
		cli_json_number(json, names[i], row->device->figures[i]);
	put_rate(json, "moves_per_second", row->rated, row->moves);
	put_rate(json, "moved_bytes_per_second", row->rated, row->moved_bytes);
	put_decision(json, &process->decision);
	spill_json_object_end(json);
}

static void put_others(struct spill_json *json, const struct cli_top_card *card)
{
	spill_json_array(cli_json_key(json, "others"));
	for (unsigned i = 0; i < card->named; i++) {
		const struct cli_card_user *other = &card->other[i];
		spill_json_object(json);
		cli_json_number(json, "pid", other->pid);
		cli_json_text(json, "program", other->name[0] ? other->name : NULL);
		put_size(json, "bytes", other->bytes, UINT64_MAX);
		spill_json_object_end(json);
	}
	spill_json_array_end(json);
}

static void put_card(struct spill_json *json, const struct cli_top_card *card)
{
	const struct spill_live_page_device *about = &card->device->about;

	spill_json_object(json);
	cli_json_number(json, "device", card->number);
	cli_json_text(json, "name", about->name[0] ? about->name : NULL);
	cli_json_text(json, "uuid", about->uuid[0] ? about->uuid : NULL);
	cli_json_text(json, "pci", about->pci[0] ? about->pci : NULL);
	put_size(json, "bytes", about->bytes, 0);
	cli_json_number(json, "processes", card->users);
	cli_json_number(json, "device_bytes", card->held);
	cli_json_number(json, "away_bytes", card->away);
	put_size(json, "others_bytes", card->others, UINT64_MAX);
	put_others(json, card);
	put_size(json, "limit", card->users ? card->limit : UINT64_MAX, UINT64_MAX);
	spill_json_object_end(json);
}

void cli_top_json(const struct cli_top_look *look, const struct cli_top_view *view)
{
	struct spill_json json;

	cli_json_begin(&json);
	spill_json_object(&json);
	put_seconds(&json, "time", look->wall_us);
	spill_json_array(cli_json_key(&json, "devices"));
	for (size_t i = 0; i < view->card_count; i++)
		put_card(&json, &view->cards[i]);
	spill_json_array_end(&json);
	spill_json_array(cli_json_key(&json, "rows"));
	for (size_t i = 0; i < view->count; i++)
		put_row(&json, &view->rows[i]);
	spill_json_array_end(&json);
	cli_json_number(&json, "not_looked_into", look->closed);
	cli_json_number(&json, "not_readable", look->broken);
	cli_json_number(&json, "other_versions", look->other);
	spill_json_object_end(&json);
	cli_json_end(&json);
}
