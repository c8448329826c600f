/* The data of the page: the report's own object, and the stories. html/data.js reads it, and says what each member is. */
#include <stdlib.h>

#include "json_out.h"
#include "report_html.h"
#include "cli.h"

struct page {
	struct spill_json json;
	/* Names of marks, each once: its number in the page + 1, by its id; and the names in that order. */
	unsigned *index;
	const struct cli_name **names;
	unsigned count;
};

static void number(struct page *page, uint64_t value)
{
	spill_json_u64(cli_json_element(&page->json), value);
}

static void name(struct page *page, const struct cli_name *name)
{
	if (name && !page->index[name->id]) {
		page->names[page->count++] = name;
		page->index[name->id] = page->count;
	}
	number(page, name ? page->index[name->id] : 0);
}

static void begin_column(struct page *page, const char *member)
{
	spill_json_array(cli_json_key(&page->json, member));
}

static void end_column(struct page *page)
{
	spill_json_array_end(&page->json);
}

static uint64_t figure(const struct spill_bytes *bytes, size_t offset)
{
	return *(const uint64_t *)((const char *)bytes + offset);
}

/* What was held of one kind of memory: the most of each bucket, and how much less its least and its last are. */
static void series(struct page *page, const char *member, size_t offset, const struct cli_timeline *line)
{
	spill_json_object(cli_json_key(&page->json, member));
	begin_column(page, "most");
	for (size_t i = 0; i < line->count; i++)
		number(page, figure(&line->buckets[i].most, offset));
	end_column(page);
	begin_column(page, "least");
	for (size_t i = 0; i < line->count; i++)
		number(page,
		       figure(&line->buckets[i].most, offset) - figure(&line->buckets[i].least, offset));
	end_column(page);
	begin_column(page, "last");
	for (size_t i = 0; i < line->count; i++)
		number(page, figure(&line->buckets[i].most, offset) - figure(&line->buckets[i].last, offset));
	end_column(page);
	spill_json_object_end(&page->json);
}

/* Microseconds: from the end of the bucket before it to its beginning, and from there to its end. */
static void times(struct page *page, const struct cli_timeline *line)
{
	uint64_t before = 0;

	begin_column(page, "after");
	for (size_t i = 0; i < line->count; i++) {
		number(page, line->buckets[i].first_us - before);
		before = line->buckets[i].last_us;
	}
	end_column(page);
	begin_column(page, "lasts");
	for (size_t i = 0; i < line->count; i++)
		number(page, line->buckets[i].last_us - line->buckets[i].first_us);
	end_column(page);
}

static void marks(struct page *page, const char *member, enum cli_mark mark, const struct cli_timeline *line)
{
	begin_column(page, member);
	for (size_t i = 0; i < line->count; i++) {
		const struct cli_marked *marked = &line->buckets[i].marks[mark];

		if (!marked->count)
			continue;
		spill_json_array(cli_json_element(&page->json));
		number(page, i);
		number(page, marked->count);
		number(page, marked->bytes);
		number(page, marked->largest);
		name(page, marked->api);
		name(page, marked->caller);
		name(page, marked->reason);
		spill_json_array_end(&page->json);
	}
	end_column(page);
}

static const struct cli_device *device_of(const struct cli_summary *summary, int device)
{
	for (size_t i = 0; i < summary->device_count; i++) {
		if (summary->devices[i].device == device)
			return &summary->devices[i];
	}
	return NULL;
}

static void lane(struct page *page, const struct cli_lane *lane, const struct cli_summary *summary)
{
	const struct cli_device *device = device_of(summary, lane->device);
	struct spill_json *json = &page->json;

	spill_json_object(cli_json_element(json));
	cli_json_device(json, lane->device);
	if (device && device->limit != SPILL_UNLIMITED)
		cli_json_number(json, "limit", device->limit);
	cli_json_number(json, "width", (uint64_t)1 << lane->line.shift);
	times(page, &lane->line);
	series(page, "device", offsetof(struct spill_bytes, device), &lane->line);
	series(page, "host", offsetof(struct spill_bytes, host), &lane->line);
	series(page, "managed", offsetof(struct spill_bytes, managed), &lane->line);
	spill_json_object(cli_json_key(json, "marks"));
#define X(id, word) marks(page, word, CLI_MARK_##id, &lane->line);
	CLI_MARKS(X)
#undef X
	spill_json_object_end(json);
	spill_json_object_end(json);
}

static void settings(struct spill_json *json, const struct cli_story *story)
{
	spill_json_array(cli_json_key(json, "policy"));
	for (unsigned i = 0; i < story->policy_count; i++) {
		spill_json_object(json);
		cli_json_text(json, "name", story->policy[i].name);
		cli_json_text(json, "value", story->policy[i].value);
		cli_json_text(json, "source", story->policy[i].source);
		spill_json_object_end(json);
	}
	spill_json_array_end(json);
	spill_json_array(cli_json_key(json, "args"));
	for (unsigned i = 0; i < story->arg_count; i++)
		cli_json_text_element(json, story->args[i]);
	spill_json_array_end(json);
	cli_json_bool(json, "args_cut", story->args_cut);
}

/* What the fit would be with other margins than the one that was asked for. */
static void margins(struct spill_json *json, const struct cli_summary *summary, uint64_t asked)
{
	const uint64_t mib = (uint64_t)1 << 20,
	               list[] = {0, 256 * mib, 512 * mib, 1024 * mib, 2048 * mib, asked};

	spill_json_array(cli_json_key(json, "margins"));
	for (size_t i = 0; i < summary->device_count; i++) {
		for (size_t at = 0; at < sizeof(list) / sizeof(list[0]) && summary->devices[i].bytes; at++) {
			struct cli_fit_row row = cli_fit_row(&summary->devices[i], list[at]);

			spill_json_object(cli_json_element(json));
			cli_json_device(json, summary->devices[i].device);
			cli_json_number(json, "margin", list[at]);
			cli_json_number(json, "usable", row.usable);
			spill_json_i64(cli_json_key(json, "surplus"), row.surplus);
			spill_json_object_end(json);
		}
	}
	spill_json_array_end(json);
}

/* How many rows its tables have, of which the first are told. */
static void rows(struct spill_json *json, const struct cli_summary *summary)
{
	static const char *const names[CLI_VIEWS] = {"by_caller", "by_place", "by_rule", "by_reason"};

	spill_json_object(cli_json_key(json, "rows"));
	for (unsigned view = 0; view < CLI_VIEWS; view++)
		cli_json_number(json, names[view], summary->views[view].count);
	spill_json_object_end(json);
}

static void story(struct page *page, const struct cli_story *story, const struct cli_summary *summary,
                  uint64_t margin)
{
	struct spill_json *json = &page->json;

	spill_json_object(json);
	settings(json, story);
	rows(json, summary);
	margins(json, summary, margin);
	if (story->left_out)
		spill_json_seconds(cli_json_key(json, "left_out_since"), story->since_us);
	spill_json_array(cli_json_key(json, "lanes"));
	for (size_t i = 0; i < story->lane_count; i++)
		lane(page, &story->lanes[i], summary);
	spill_json_array_end(json);
	spill_json_object_end(json);
}

static void data(struct page *page, const struct cli_report *report, const struct cli_stories *stories)
{
	struct spill_json *json = &page->json;

	spill_json_object(json);
	cli_json_text(json, "made_by", SPILL_VERSION);
	cli_report_members(json, report);
	spill_json_array(cli_json_key(json, "stories"));
	for (size_t i = 0; i < report->summaries.count; i++) {
		const struct cli_summary *summary = &report->summaries.runs[i];

		story(page, &stories->runs[summary->number], summary, report->margin);
	}
	spill_json_array_end(json);
	spill_json_array(cli_json_key(json, "names"));
	for (unsigned i = 0; i < page->count; i++)
		cli_json_text_element(json, page->names[i]->text);
	spill_json_array_end(json);
	spill_json_object_end(json);
}

void cli_report_page(FILE *out, const struct cli_report *report, const struct cli_stories *stories)
{
	unsigned names = report->summaries.names->count;
	struct page page = {
	    .index = cli_realloc(NULL, names, sizeof(*page.index)),
	    .names = cli_realloc(NULL, names, sizeof(struct cli_name *)),
	};

	for (unsigned i = 0; i < names; i++)
		page.index[i] = 0;
	fputs(cli_page_before, out);
	cli_json_begin_page(&page.json, out);
	data(&page, report, stories);
	cli_json_end(&page.json);
	fputs(cli_page_after, out);
	free(page.index);
	free(page.names);
}
