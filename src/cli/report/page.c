/* The page's data: the report's object and the stories. html/data.js describes each member. */
#include <stdlib.h>

#include "json_out.h"
#include "report.h"
#include "cli.h"

struct page {
	struct spill_json json;
	/* Names of marks, each written once. `index`: number in the page + 1, by the name's id. */
	unsigned *index;
	const struct cli_name **names;
	unsigned count;
};

static void put_number(struct page *page, uint64_t value)
{
	spill_json_u64(cli_json_element(&page->json), value);
}

static void put_name(struct page *page, const struct cli_name *put_name)
{
	if (put_name && !page->index[put_name->id]) {
		page->names[page->count++] = put_name;
		page->index[put_name->id] = page->count;
	}
	put_number(page, put_name ? page->index[put_name->id] : 0);
}

static void begin_column(struct page *page, const char *member)
{
	spill_json_array(cli_json_key(&page->json, member));
}

static void end_column(struct page *page)
{
	spill_json_array_end(&page->json);
}

/* A place's figure among those at `offset` in a bucket. */
static uint64_t figure_at(const struct cli_bucket *bucket, size_t offset, size_t place)
{
	return *(const uint64_t *)(const void *)((const char *)bucket + offset + place);
}

/* For each bucket, how much lower the figures at `offset` are than the most. */
static void put_below_most(struct page *page, const char *member, const struct cli_timeline *line,
                           size_t offset, size_t place)
{
	begin_column(page, member);
	for (size_t i = 0; i < line->count; i++)
		put_number(page, figure_at(&line->buckets[i], offsetof(struct cli_bucket, most), place) -
		                     figure_at(&line->buckets[i], offset, place));
	end_column(page);
}

/* Held bytes: the most in each bucket, and how much lower the least and the last are. */
static void put_series(struct page *page, const char *member, size_t place, const struct cli_timeline *line)
{
	spill_json_object(cli_json_key(&page->json, member));
	begin_column(page, "most");
	for (size_t i = 0; i < line->count; i++)
		put_number(page, figure_at(&line->buckets[i], offsetof(struct cli_bucket, most), place));
	end_column(page);
	put_below_most(page, "least", line, offsetof(struct cli_bucket, least), place);
	put_below_most(page, "last", line, offsetof(struct cli_bucket, last), place);
	spill_json_object_end(&page->json);
}

/* Microseconds from the end of the bucket before to this begin, and from begin to end. */
static void put_times(struct page *page, const struct cli_timeline *line)
{
	uint64_t before = 0;

	begin_column(page, "after");
	for (size_t i = 0; i < line->count; i++) {
		put_number(page, line->buckets[i].first_us - before);
		before = line->buckets[i].last_us;
	}
	end_column(page);
	begin_column(page, "lasts");
	for (size_t i = 0; i < line->count; i++)
		put_number(page, line->buckets[i].last_us - line->buckets[i].first_us);
	end_column(page);
}

static void put_marks(struct page *page, const char *member, enum cli_mark mark,
                      const struct cli_timeline *line)
{
	begin_column(page, member);
	for (size_t i = 0; i < line->count; i++) {
		const struct cli_marked *marked = &line->buckets[i].marks[mark];

		if (!marked->count)
			continue;
		spill_json_array(cli_json_element(&page->json));
		put_number(page, i);
		put_number(page, marked->count);
		put_number(page, marked->bytes);
		put_number(page, marked->largest);
		put_name(page, marked->api);
		put_name(page, marked->caller);
		put_name(page, marked->reason);
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

static void put_lane(struct page *page, const struct cli_lane *put_lane, const struct cli_summary *summary)
{
	const struct cli_device *device = device_of(summary, put_lane->device);
	struct spill_json *json = &page->json;

	spill_json_object(cli_json_element(json));
	cli_json_device(json, put_lane->device);
	if (device && device->limit != SPILL_UNLIMITED)
		cli_json_number(json, "limit", device->limit);
	cli_json_number(json, "width", (uint64_t)1 << put_lane->line.shift);
	put_times(page, &put_lane->line);
	put_series(page, "device", offsetof(struct spill_bytes, device), &put_lane->line);
	put_series(page, "host", offsetof(struct spill_bytes, host), &put_lane->line);
	put_series(page, "managed", offsetof(struct spill_bytes, managed), &put_lane->line);
	spill_json_object(cli_json_key(json, "marks"));
#define X(id, word) put_marks(page, word, CLI_MARK_##id, &put_lane->line);
	CLI_MARKS(X)
#undef X
	spill_json_object_end(json);
	spill_json_object_end(json);
}

static void put_settings(struct spill_json *json, const struct cli_story *put_story)
{
	spill_json_array(cli_json_key(json, "policy"));
	for (unsigned i = 0; i < put_story->policy_count; i++) {
		spill_json_object(json);
		cli_json_text(json, "name", put_story->policy[i].name);
		cli_json_text(json, "value", put_story->policy[i].value);
		cli_json_text(json, "source", put_story->policy[i].source);
		spill_json_object_end(json);
	}
	spill_json_array_end(json);
	spill_json_array(cli_json_key(json, "args"));
	for (unsigned i = 0; i < put_story->arg_count; i++)
		cli_json_text_element(json, put_story->args[i]);
	spill_json_array_end(json);
	cli_json_bool(json, "args_cut", put_story->args_cut);
}

/* The fit with some other margins. */
static void put_margins(struct spill_json *json, const struct cli_summary *summary, uint64_t asked)
{
	const uint64_t mib = (uint64_t)1 << 20,
	               list[] = {0, 256 * mib, 512 * mib, 1024 * mib, 2048 * mib, asked};

	spill_json_array(cli_json_key(json, "margins"));
	for (size_t i = 0; i < summary->device_count; i++) {
		for (size_t choice = 0; choice < sizeof(list) / sizeof(list[0]) && summary->devices[i].bytes;
		     choice++) {
			struct cli_fit_row row = cli_fit_row(&summary->devices[i], list[choice]);

			spill_json_object(cli_json_element(json));
			cli_json_device(json, summary->devices[i].device);
			cli_json_number(json, "margin", list[choice]);
			cli_json_number(json, "usable", row.usable);
			cli_report_json_surplus(json, &row);
			spill_json_object_end(json);
		}
	}
	spill_json_array_end(json);
}

/* Rows of the whole tables. The report has only the first ones. */
static void put_row_counts(struct spill_json *json, const struct cli_summary *summary)
{
	static const char *const names[CLI_VIEWS] = {"by_caller", "by_place", "by_rule", "by_reason"};

	spill_json_object(cli_json_key(json, "rows"));
	for (unsigned view = 0; view < CLI_VIEWS; view++)
		cli_json_number(json, names[view], summary->views[view].count);
	spill_json_object_end(json);
}

static void put_story(struct page *page, const struct cli_story *put_story, const struct cli_summary *summary,
                      uint64_t margin)
{
	struct spill_json *json = &page->json;

	spill_json_object(json);
	put_settings(json, put_story);
	put_row_counts(json, summary);
	put_margins(json, summary, margin);
	if (put_story->incomplete)
		spill_json_seconds(cli_json_key(json, "left_out_since"), put_story->incomplete_since_us);
	spill_json_array(cli_json_key(json, "lanes"));
	for (size_t i = 0; i < put_story->lane_count; i++)
		put_lane(page, &put_story->lanes[i], summary);
	spill_json_array_end(json);
	spill_json_object_end(json);
}

/* The words of the log's reasons. */
static void put_reasons(struct spill_json *json)
{
	spill_json_object(cli_json_key(json, "reasons"));
	for (unsigned i = 0; i < SPILL_REASONS_COUNT; i++) {
		const char *name = spill_reason_name((enum spill_reason)i);

		cli_json_text(json, name, spill_reason_words(name));
	}
	spill_json_object_end(json);
}

static void put_data(struct page *page, const struct cli_report *report, const struct cli_stories *stories)
{
	struct spill_json *json = &page->json;

	spill_json_object(json);
	cli_json_text(json, "made_by", SPILL_VERSION);
	cli_report_members(json, report);
	put_reasons(json);
	spill_json_array(cli_json_key(json, "stories"));
	for (size_t i = 0; i < report->summaries.count; i++) {
		const struct cli_summary *summary = &report->summaries.runs[i];

		put_story(page, &stories->runs[summary->number], summary, report->margin);
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
	put_data(&page, report, stories);
	cli_json_end(&page.json);
	fputs(cli_page_after, out);
	free(page.index);
	free(page.names);
}
