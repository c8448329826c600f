/* Lines of the log are read as they were written, and nothing else is taken for one. */
#include "unit.h"

#include <limits.h>
#include <stdalign.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../fuzz/record_again.h"
#include "json_read.h"
#include "roll.h"

#define MOST 65536

static char first[MOST], second[MOST], scratch[SPILL_RECORD_SCRATCH(MOST)];

static uint64_t number(void)
{
	static const uint64_t ends[] = {0, 1, 9, 10, INT64_MAX, ((uint64_t)1 << 53) + 1, UINT64_MAX};

	return roll_any() % 2 ? ends[roll_any() % (sizeof(ends) / sizeof(ends[0]))]
	                      : roll_any() >> roll_any() % 64;
}

static int thread(void)
{
	static const int ends[] = {0, 1, -1, INT_MAX, INT_MIN};

	return roll_any() % 2 ? ends[roll_any() % 5] : (int)roll_any();
}

/* One of a few that have all that can be in a text. */
static const char *text(void)
{
	static const char *const texts[] = {
	    "",
	    "x",
	    "libggml-cuda.so+0x1a2b",
	    "a \"quoted\" \\ path/",
	    "\b\f\n\r\t\x01\x1f\x7f",
	    "\xC2\x80\xC2\x9B\xC2\xA0",
	    "\xC3\xA4\xE2\x82\xAC\xED\x9F\xBF\xEF\xBF\xBF\xF0\x9F\x98\x80\xF4\x8F\xBF\xBF",
	    "cut \xE2\x82, bad \xFF\xC0\xAF, surrogate \xED\xA0\x80",
	    "\\u0041"};

	return texts[roll_any() % (sizeof(texts) / sizeof(texts[0]))];
}

static const char *maybe(void)
{
	return roll_any() % 3 ? text() : NULL;
}

static enum spill_place place(void)
{
	return (enum spill_place)(roll_any() % SPILL_PLACES);
}

static struct spill_bytes bytes(void)
{
	return (struct spill_bytes){number(), number(), number()};
}

static struct spill_level level(void)
{
	return roll_any() % 2 ? (struct spill_level){number(), number(), number(), number()}
	                      : (struct spill_level){0};
}

static struct spill_seen seen(void)
{
	return roll_any() % 2 ? (struct spill_seen){number(), 1 + number() / 2, number(), number()}
	                      : (struct spill_seen){0};
}

static struct spill_away away(void)
{
	return roll_any() % 2 ? (struct spill_away){number(),
	                                            1 + number() / 2,
	                                            number(),
	                                            {number(), number(), number(), number()}}
	                      : (struct spill_away){0};
}

static unsigned attempts(struct spill_attempt *tried)
{
	unsigned count = roll_any() % (SPILL_ATTEMPTS + 1);

	for (unsigned i = 0; i < count; i++)
		tried[i] = (struct spill_attempt){text(), text()};
	return count;
}

static size_t any_alloc(char *buffer)
{
	struct spill_record_alloc alloc = {number(), number(), number(), level(),  thread(), thread(),
	                                   maybe(),  maybe(),  maybe(),  number(), number(), place(),
	                                   bytes(),  maybe(),  maybe(),  maybe()};

	alloc.attempts = attempts(alloc.tried);
	alloc.seen = seen();
	alloc.took_us = number();
	return spill_record_alloc(&alloc, buffer, MOST);
}

static size_t any_free(char *buffer)
{
	struct spill_record_free record = {number(), number(), number(), level(), thread(), thread(), maybe(),
	                                   maybe(),  number(), number(), place(), maybe(),  number()};

	return spill_record_free(&record, buffer, MOST);
}

static size_t any_move(char *buffer)
{
	struct spill_record_move move = {number(),           number(), number(), level(), thread(),
	                                 thread(),           text(),   maybe(),  maybe(), number(),
	                                 (unsigned)number(), bytes(),  maybe(),  seen(),  number()};

	return spill_record_move(&move, buffer, MOST);
}

static struct spill_sum sum(void)
{
	return roll_any() % 3 ? (struct spill_sum){1 + number() / 2, bytes()} : (struct spill_sum){0};
}

static size_t any_sum(char *buffer)
{
	struct spill_record_sum record = {number(), number(), level(),  thread(),
	                                  maybe(),  maybe(),  maybe(),  sum(),
	                                  sum(),    number(), number(), {number(), number()}};

	return spill_record_sum(&record, buffer, MOST);
}

static unsigned groups(struct spill_group *list, unsigned most, bool requesters)
{
	unsigned count = roll_any() % (most + 1);

	for (unsigned i = 0; i < count; i++)
		list[i] = (struct spill_group){maybe(), number(), bytes(), requesters ? maybe() : NULL};
	return count;
}

static size_t any_oom(char *buffer)
{
	struct spill_record_oom oom = {number(), thread(), thread(), maybe(), maybe(), maybe(), number(),
	                               number(), number(), number(), bytes(), maybe(), maybe()};

	if (roll_any() % 2)
		oom.refusal = (struct spill_refusal){number(), number(), 1 + number() / 2, number()};
	oom.would = maybe();
	oom.callers = groups(oom.by_caller, SPILL_CALLERS, true);
	oom.places = groups(oom.by_place, SPILL_PLACES, false);
	oom.attempts = attempts(oom.tried);
	oom.holders = roll_any() % (SPILL_HOLDERS + 1);
	for (unsigned i = 0; i < oom.holders; i++)
		oom.top[i] = (struct spill_holder){maybe(), maybe(), number(), number(), place(), maybe()};
	return spill_record_oom(&oom, buffer, MOST);
}

static size_t any_file(char *buffer)
{
	const struct spill_record_file file = {number(), text(), text(), maybe()};

	return spill_record_file(&file, buffer, MOST);
}

static size_t any_note(char *buffer)
{
	return spill_record_note(number(), thread(), maybe(), maybe(), buffer, MOST);
}

static size_t any_exit(char *buffer)
{
	struct spill_totals totals = {number(), number(), number(), number(), number(), number(),
	                              number(), number(), bytes(),  bytes(),  bytes(),  away()};
	struct spill_hits hits[40];
	unsigned count = roll_any() % 41;

	for (unsigned i = 0; i < count; i++)
		hits[i] = (struct spill_hits){text(), text(), number()};
	return spill_record_exit(number(), maybe(), &totals, hits, count, buffer, MOST);
}

static size_t any_drop(char *buffer)
{
	struct spill_record_drop drop = {.time_us = number()};

	for (unsigned i = 0; i < SPILL_DROPS_COUNT; i++)
		drop.sums[i] = sum();
	drop.peak = bytes();
	drop.away = away();
	return spill_record_drop(&drop, buffer, MOST);
}

static size_t any_use(char *buffer)
{
	const struct spill_record_use record = {.time_us = number(), .away = {number(), 1, number(), {1}}};

	return spill_record_use(&record, buffer, MOST);
}

static size_t any_start(char *buffer)
{
	struct spill_record_start start = {
	    .time_us = number(),
	    .time = maybe(),
	    .boot = maybe(),
	    .host = maybe(),
	    .program = maybe(),
	    .exe = maybe(),
	    .version = maybe(),
	    .backend = maybe(),
	    .pid = thread(),
	    .ppid = thread(),
	    .driver = thread(),
	    .continues = roll_any() % 2 * number(),
	};
	struct spill_record_device devices[4];
	struct spill_record_option options[30];
	const char *args[20];

	start.device_count = roll_any() % 5;
	for (unsigned i = 0; i < start.device_count; i++)
		devices[i] =
		    (struct spill_record_device){(int)i, text(), maybe(), maybe(), maybe(), number()};
	for (unsigned i = 0; i < SPILL_RANKS_COUNT; i++)
		start.ranks.of[i] = maybe();
	start.option_count = roll_any() % 31;
	for (unsigned i = 0; i < start.option_count; i++)
		options[i] = (struct spill_record_option){text(), text(), text()};
	start.arg_count = roll_any() % 21;
	for (unsigned i = 0; i < start.arg_count; i++)
		args[i] = text();
	start.devices = devices;
	start.policy = options;
	start.args = args;
	start.cut = roll_any() % 2;
	return again_start(&start, buffer, MOST);
}

static size_t (*const any[SPILL_KINDS_COUNT])(char *buffer) = {
    [SPILL_KIND_START] = any_start, [SPILL_KIND_ALLOC] = any_alloc, [SPILL_KIND_FREE] = any_free,
    [SPILL_KIND_MOVE] = any_move,   [SPILL_KIND_SUM] = any_sum,     [SPILL_KIND_OOM] = any_oom,
    [SPILL_KIND_FILE] = any_file,   [SPILL_KIND_NOTE] = any_note,   [SPILL_KIND_DROP] = any_drop,
    [SPILL_KIND_USE] = any_use,     [SPILL_KIND_EXIT] = any_exit,
};

/* From a copy of exactly this length, so that a sanitizer sees a byte read outside. */
static const char *read_bytes(const char *line, size_t length, struct spill_record *record, size_t *at)
{
	char *copy = malloc(length ? length : 1);

	assert_non_null(copy);
	if (length)
		memcpy(copy, line, length);
	const char *reason =
	    spill_record_read(copy, length, scratch, SPILL_RECORD_SCRATCH(length), record, at);
	free(copy);
	return reason;
}

TEST(what_is_written_is_read)
{
	struct spill_record record;
	size_t at, length;

	roll_state = 0x9e3779b97f4a7c15;
	for (unsigned round = 0; round < 3000; round++) {
		for (int kind = 0; kind < SPILL_KINDS_COUNT; kind++) {
			length = any[kind](first);
			assert_int_not_equal(length, 0);
			assert_null(read_bytes(first, length, &record, &at));
			assert_int_equal(record.kind, kind);
			assert_int_equal(record.version, SPILL_RECORD_VERSION);
			assert_int_equal(write_again(&record, second, sizeof(second)), length);
			assert_memory_equal(first, second, length);
		}
	}
}

/* A line that was torn anywhere is no record, and nothing behind it is looked at. */
TEST(no_part_of_a_line_is_one)
{
	struct spill_record record;
	size_t at;

	roll_state = 0x2545f4914f6cdd1d;
	for (int kind = 0; kind < SPILL_KINDS_COUNT; kind++) {
		size_t whole = any[kind](first) - 1;

		for (size_t length = 0; length < whole; length++) {
			at = whole + 1;
			assert_non_null(read_bytes(first, length, &record, &at));
			assert_true(at <= length);
		}
		assert_null(read_bytes(first, whole, &record, &at));
	}
}

TEST(scratch_is_never_overrun)
{
	struct spill_record record;
	size_t at;

	roll_state = ROLL_BEGIN;
	for (int kind = 0; kind < SPILL_KINDS_COUNT; kind++) {
		size_t length = any[kind](first), enough = 0;

		for (size_t size = 0; size < SPILL_RECORD_SCRATCH(length); size++) {
			const char *reason;

			scratch[1 + size] = '#';
			reason = spill_record_read(first, length, scratch + 1, size, &record, &at);
			assert_int_equal(scratch[1 + size], '#');
			if (reason)
				assert_string_equal(reason, "too little scratch for it");
			else
				enough++;
		}
		assert_true(enough > 0);
	}
}

/* Wherever the scratch begins: what is skipped up to there is all that it costs. */
TEST(lists_are_aligned)
{
	enum { ALIGNMENT = alignof(struct spill_record_device) };
	static char room[512] __attribute__((aligned(ALIGNMENT)));
	struct spill_record record;
	const struct spill_record_device device = {.name = "one", .bytes = 7};
	const struct spill_record_start start = {.time = "now",
	                                         .host = "here",
	                                         .program = "p",
	                                         .version = "1",
	                                         .device_count = 1,
	                                         .devices = &device};
	size_t at, least = 0, length = again_start(&start, first, MOST);

	for (unsigned shift = 0; shift < 2 * ALIGNMENT; shift++) {
		size_t size = 0, skipped = (ALIGNMENT - shift % ALIGNMENT) % ALIGNMENT;

		while (spill_record_read(first, length, room + shift, size, &record, &at) && size < 400)
			size++;
		assert_int_equal(record.start.device_count, 1);
		assert_int_equal((uintptr_t)record.start.devices % ALIGNMENT, 0);
		assert_true(record.start.devices[0].bytes == 7);
		if (shift == 0)
			least = size;
		assert_int_equal(size, least + skipped);
	}
	/* A record without lists and texts needs nothing behind it. */
	roll_state = ROLL_BEGIN;
	length = any_drop(first);
	for (size_t shift = 1; shift < ALIGNMENT; shift++) {
		assert_null(spill_record_read(first, length, room + shift, ALIGNMENT - shift, &record, &at));
		assert_non_null(
		    spill_record_read(first, length, room + shift, ALIGNMENT - shift - 1, &record, &at));
	}
}

#define FREE_HEAD "{\"v\":1,\"kind\":\"free\",\"t\":1.000001,"
#define FREE_REST \
	"\"seq\":7,\"order\":9,\"tid\":2,\"bytes\":4096,\"ptr\":\"0xabc\",\"place\":\"host\",\"us\":3"
#define FREE_TAIL FREE_REST "}"
#define NOTE(members) "{\"v\":1,\"kind\":\"note\",\"t\":0.5,\"tid\":1," members "}"
#define TEN(s) s s s s s s s s s s
#define DEEP64(s) TEN(s) TEN(s) TEN(s) TEN(s) TEN(s) TEN(s) s s s s

struct refused {
	const char *line, *reason;
};

TEST(refused_lines)
{
	static const struct refused lines[] = {
	    {"", "it ends within a value"},
	    {"\n", "it ends within a value"},
	    {"garbage", "not an object"},
	    {"[1]", "not an object"},
	    {"{}", "not a text"},
	    {"{\"t\":1}", "no version"},
	    {"{\"v\":1,\"t\":1}", "no kind"},
	    {"{\"v\":\"1\",\"kind\":\"free\"}", "not a number"},
	    {"{\"v\":1,\"kind\":7}", "not a text"},
	    {"{\"v\":1,\"kind\":\"fr\\u0065e\"}", "an escape within a word of the format"},
	    {FREE_HEAD FREE_REST ",}", "not a text"},
	    {FREE_HEAD FREE_REST "]", "neither ',' nor '}'"},
	    {FREE_HEAD FREE_TAIL FREE_HEAD FREE_TAIL, "something behind the record"},
	    {FREE_HEAD FREE_TAIL "\n\n{", "something behind the record"},
	    {FREE_HEAD "\"seq\":7}", "a member is missing"},
	    {FREE_HEAD "\"seq\":7," FREE_TAIL, "a member twice"},
	    {FREE_HEAD "\"v\":1," FREE_TAIL, "a member twice"},
	    {FREE_HEAD "\"kind\":\"alloc\"," FREE_TAIL, "a member twice"},
	    {FREE_HEAD "\"s\\u0065q\":7," FREE_TAIL, "an escape within a word of the format"},
	    {FREE_HEAD "\"dev\":\"0\"," FREE_TAIL, "not a number"},
	    {FREE_HEAD "\"dev\":-1," FREE_TAIL, "not a number"},
	    {FREE_HEAD "\"dev\":1.5," FREE_TAIL, "not a whole number"},
	    {FREE_HEAD "\"dev\":1e3," FREE_TAIL, "not a whole number"},
	    {FREE_HEAD "\"dev\":2147483648," FREE_TAIL, "a number out of range"},
	    {FREE_HEAD "\"dev\":01," FREE_TAIL, "a number that begins with 0"},
	    {FREE_HEAD "\"dev\":18446744073709551616," FREE_TAIL, "a number out of range"},
	    {FREE_HEAD "\"dev\" 1," FREE_TAIL, "no ':' behind a member's name"},
	    {FREE_HEAD "\"dev\":," FREE_TAIL, "not a number"},
	    {FREE_HEAD "\"api\":null," FREE_TAIL, "not a text"},
	    {FREE_HEAD "\"api\":\"\\u0000\"," FREE_TAIL, "an escape without a character"},
	    {FREE_HEAD "\"api\":\"\\u12g4\"," FREE_TAIL, "an escape without a character"},
	    {FREE_HEAD "\"api\":\"\\x41\"," FREE_TAIL, "an escape that JSON does not have"},
	    {FREE_HEAD "\"api\":\"\\ud800\"," FREE_TAIL, "half of a surrogate pair"},
	    {FREE_HEAD "\"api\":\"\\udc00\\ud800\"," FREE_TAIL, "half of a surrogate pair"},
	    {FREE_HEAD "\"api\":\"\\udc00\\udc00\"," FREE_TAIL, "half of a surrogate pair"},
	    {FREE_HEAD "\"api\":\"\\ud800\\ud800\"," FREE_TAIL, "half of a surrogate pair"},
	    {FREE_HEAD "\"api\":\"\\ud800x\"," FREE_TAIL, "half of a surrogate pair"},
	    {FREE_HEAD "\"api\":\"a\tb\"," FREE_TAIL, "a control character within a text"},
	    {FREE_HEAD "\"api\":\"\xFF\"," FREE_TAIL, "bytes that are not UTF-8"},
	    {FREE_HEAD "\"api\":\"\xC0\xAF\"," FREE_TAIL, "bytes that are not UTF-8"},
	    {FREE_HEAD "\"api\":\"\xED\xA0\x80\"," FREE_TAIL, "bytes that are not UTF-8"},
	    {FREE_HEAD "\"later\":{\"api\":\"\xFF\"}," FREE_TAIL, "bytes that are not UTF-8"},
	    {FREE_HEAD "\"later\":[1,]," FREE_TAIL, "not a value"},
	    {FREE_HEAD "\"later\":[1}," FREE_TAIL, "neither ',' nor ']'"},
	    {FREE_HEAD "\"later\":{1}," FREE_TAIL, "not a text"},
	    {FREE_HEAD "\"later\":nul," FREE_TAIL, "not a value"},
	    {FREE_HEAD "\"later\":01," FREE_TAIL, "a number that begins with 0"},
	    {FREE_HEAD "\"later\":-," FREE_TAIL, "not a number"},
	    {FREE_HEAD "\"later\":1.," FREE_TAIL, "not a number"},
	    {FREE_HEAD "\"later\":1e," FREE_TAIL, "not a number"},
	    {FREE_HEAD "\"later\":" DEEP64("[") "[" DEEP64("]") "]," FREE_TAIL, "nested too deep"},
	    {NOTE("\"t\":0"), "a member twice"},
	    {"{\"v\":1,\"kind\":\"alloc\",\"t\":0,\"device_bytes\":18446744073709551616}",
	     "a number out of range"},
	    {"{\"v\":1,\"kind\":\"alloc\",\"t\":0,\"device_bytes\":99999999999999999999}",
	     "a number out of range"},
	    {"{\"v\":1,\"kind\":\"move\",\"t\":0,\"chunks\":4294967296}", "a number out of range"},
	    {"{\"v\":1,\"kind\":\"note\",\"t\":\"0\",\"tid\":1}", "not a number"},
	    {"{\"v\":1,\"kind\":\"note\",\"t\":-1,\"tid\":1}", "not a number"},
	    {"{\"v\":1,\"kind\":\"note\",\"t\":0.1234567,\"tid\":1}", "a time in parts of a microsecond"},
	    {"{\"v\":1,\"kind\":\"note\",\"t\":18446744073709.551616,\"tid\":1}", "a number out of range"},
	    {"{\"v\":1,\"kind\":\"note\",\"t\":1e3,\"tid\":1}", "not a whole number"},
	    {"{\"v\":1,\"kind\":\"note\",\"t\":0,\"tid\":2147483648}", "a number out of range"},
	    {"{\"v\":1,\"kind\":\"note\",\"t\":0,\"tid\":-2147483649}", "a number out of range"},
	    {"{\"v\":1,\"kind\":\"note\",\"t\":0,\"tid\":- 1}", "not a number"},
	    {"{\"v\":1,\"kind\":\"start\",\"t\":0,\"pid\":1,\"devices\":{}}", "not a list"},
	    {"{\"v\":1,\"kind\":\"start\",\"t\":0,\"pid\":1,\"devices\":[1]}", "not an object"},
	    {"{\"v\":1,\"kind\":\"start\",\"t\":0,\"pid\":1,\"devices\":[{}]}", "a member is missing"},
	    {"{\"v\":1,\"kind\":\"start\",\"t\":0,\"pid\":1,\"args\":[\"a\",1]}", "not a text"},
	    {"{\"v\":1,\"kind\":\"start\",\"t\":0,\"pid\":1,\"cut\":1}", "neither true nor false"},
	};
	struct spill_record record;
	size_t at;

	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		const char *reason = read_bytes(lines[i].line, strlen(lines[i].line), &record, &at);

		if (!reason || strcmp(reason, lines[i].reason) != 0)
			fail_msg("%s\n%s, not %s", lines[i].line, reason ? reason : "taken", lines[i].reason);
	}
}

TEST(addresses)
{
	static const struct {
		const char *address;
		uint64_t value; /* 0: refused */
	} cases[] = {{"0x1", 1},
	             {"0xffffffffffffffff", UINT64_MAX},
	             {"0x00000000000000AB", 0xAB},
	             {"0x", 0},
	             {"0x10000000000000000", 0},
	             {"12", 0},
	             {"0xg", 0},
	             {"0X1", 0},
	             {"", 0}};
	struct spill_record record;
	size_t at;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int length = snprintf(first, sizeof(first),
		                      FREE_HEAD "\"seq\":7,\"order\":9,\"tid\":2,\"bytes\":1,\"ptr\":\"%s\","
		                                "\"place\":\"host\",\"us\":3}",
		                      cases[i].address);
		const char *reason = read_bytes(first, (size_t)length, &record, &at);

		if (cases[i].value == 0) {
			assert_string_equal(reason, "not an address");
			continue;
		}
		assert_null(reason);
		assert_int_equal(record.free.ptr, cases[i].value);
	}
}

/* Where it is wrong, for who has to find it. */
TEST(a_refusal_has_a_place)
{
	static const char line[] = FREE_HEAD "\"dev\":01," FREE_TAIL, zeros[] = "\0\0\0";
	struct spill_record record;
	size_t at = 0;

	assert_non_null(read_bytes(line, strlen(line), &record, &at));
	assert_int_equal(at, strlen(FREE_HEAD "\"dev\":0"));
	assert_string_equal(read_bytes(zeros, 3, &record, &at), "not an object");
	assert_int_equal(at, 0);
	assert_string_equal(read_bytes(zeros, 0, &record, &at), "it ends within a value");
	assert_int_equal(at, 0);
}

TEST(after_a_refusal_nothing_is_taken)
{
	struct spill_json_reader reader = spill_json_read("\"seq\":", 6);

	assert_true(spill_json_take_key(&reader, "seq", 3));
	reader = spill_json_read("\"seq\":", 6);
	spill_json_refuse(&reader, "first");
	spill_json_refuse(&reader, "second");
	assert_string_equal(reader.reason, "first");
	assert_false(spill_json_take(&reader, '"'));
	assert_false(spill_json_take_key(&reader, "seq", 3));
}

union value {
	struct spill_json_text text;
	uint64_t number;
	int natural;
	bool truth;
};

#define READER(name, member) \
	static bool read_##name(struct spill_json_reader *reader, union value *value) \
	{ \
		return spill_json_read_##name(reader, &value->member); \
	}
READER(text, text)
READER(u64, number)
READER(int, natural)
READER(bool, truth)
READER(seconds, number)
READER(pointer, number)
READER(key, text)

static bool skip_value(struct spill_json_reader *reader, union value *value)
{
	return spill_json_skip(reader);
}

static bool more(struct spill_json_reader *reader, union value *value)
{
	return spill_json_more(reader, '}');
}

/* Each reader takes its own value to the last byte. Refused before, or without one, it takes nothing. */
TEST(no_reader_takes_anything_after_a_refusal)
{
	static const struct {
		bool (*read)(struct spill_json_reader *reader, union value *value);
		const char *text;
	} cases[] = {{read_text, "\"a\""},   {read_u64, "7"},
	             {read_u64, "0"},        {read_int, "-7"},
	             {read_bool, "true"},    {read_bool, "false"},
	             {read_seconds, "1.5"},  {read_pointer, "\"0x1\""},
	             {read_key, "\"seq\":"}, {skip_value, "{\"a\":[1]}"},
	             {skip_value, "\"a\""},  {more, ","}};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		union value value = {.number = 0};
		struct spill_json_reader reader = spill_json_read(cases[i].text, strlen(cases[i].text));
		assert_true(cases[i].read(&reader, &value));
		assert_ptr_equal(reader.at, cases[i].text + strlen(cases[i].text));
		reader = spill_json_read(cases[i].text, strlen(cases[i].text));
		spill_json_refuse(&reader, "first");
		assert_false(cases[i].read(&reader, &value));
		assert_ptr_equal(reader.at, cases[i].text);
		assert_string_equal(reader.reason, "first");
		reader = spill_json_read(cases[i].text, 0);
		assert_false(cases[i].read(&reader, &value));
		assert_non_null(reader.reason);
	}
}

/* What a later version's member may hold. */
TEST(values_that_are_skipped)
{
	static const char *const good[] = {"0",
	                                   "-0",
	                                   "1",
	                                   "10",
	                                   "-12",
	                                   "0.5",
	                                   "1.50",
	                                   "1e5",
	                                   "1E5",
	                                   "1e+5",
	                                   "1e-5",
	                                   "-0.0e0",
	                                   "true",
	                                   "false",
	                                   "null",
	                                   "\"\"",
	                                   "[]",
	                                   "{}",
	                                   "[1,2]",
	                                   "[[],{}]",
	                                   "{\"a\":1}",
	                                   "{\"a\":{\"b\":[true]},\"c\":0}",
	                                   "123456789012345678901234567890"};
	static const char *const bad[] = {
	    "",         "-",        "01",         "-01",   "00",        "1.",   ".5",     "+1",     "1.e5",
	    "1e",       "1e+",      "1e-",        "1.5e",  "-a",        "1ex",  "1e5.5x", "tru",    "truth",
	    "nul",      "nil",      "[1",         "[1,",   "[1,]",      "[,1]", "{",      "{\"a\"", "{\"a\":",
	    "{\"a\":}", "{\"a\":1", "{\"a\":1,}", "{1:1}", "{\"a\" 1}", "[}",   "{]",     "\"a",    "'a'"};
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		char line[64];
		snprintf(line, sizeof(line), "%s}", good[i]);
		for (size_t behind = 0; behind < 2; behind++) {
			struct spill_json_reader reader = spill_json_read(line, strlen(good[i]) + behind);
			if (!spill_json_skip(&reader) || reader.at != line + strlen(good[i]))
				fail_msg("%s: %s", good[i], reader.reason ? reader.reason : "not its end");
		}
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		/* A number may end before what follows: then that is no member's end. */
		struct spill_json_reader reader = spill_json_read(bad[i], strlen(bad[i]));
		if (spill_json_skip(&reader) && reader.at == bad[i] + strlen(bad[i]))
			fail_msg("%s was skipped", bad[i]);
		reader = spill_json_read(bad[i], strlen(bad[i]));
		bool skipped = spill_json_skip(&reader);
		assert_int_equal(skipped, !reader.reason);
	}
}

/* Of "1.5" and the like only the first byte is there. */
TEST(nothing_behind_the_end_is_read)
{
	static const char *const texts[] = {"1.5", "1e5", "12"};
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		uint64_t value = 0;
		struct spill_json_reader reader = spill_json_read(texts[i], 1);
		assert_true(spill_json_skip(&reader));
		assert_ptr_equal(reader.at, reader.end);
		reader = spill_json_read(texts[i], 1);
		assert_true(spill_json_read_u64(&reader, &value));
		assert_int_equal(value, 1);
		reader = spill_json_read(texts[i], 1);
		assert_true(spill_json_read_seconds(&reader, &value));
		assert_int_equal(value, 1000000);
	}
}

TEST(times_that_are_refused)
{
	static const char *const bad[] = {"", "-1", ".5", "1.", "1.x", "01.5", "1.1234567", "1.5e1", "\"1\""};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		uint64_t value = 0;
		struct spill_json_reader reader = spill_json_read(bad[i], strlen(bad[i]));
		if (spill_json_read_seconds(&reader, &value) || !reader.reason)
			fail_msg("%s", bad[i]);
	}
}

static void read_fine(const char *line, struct spill_record *record)
{
	size_t at = 0;
	const char *reason = read_bytes(line, strlen(line), record, &at);

	if (reason)
		fail_msg("%s\n%zu: %s", line, at, reason);
}

TEST(what_is_not_known_is_skipped)
{
	struct spill_record record;

	read_fine(FREE_HEAD "\"later\":{\"a\":[1,-2.5e+3,{\"b\":[]},{}],\"c\":null,\"x\\ty\":true},\"more\":"
	                    "\"\\ud83d\\ude00\"," FREE_TAIL,
	          &record);
	assert_int_equal(record.kind, SPILL_KIND_FREE);
	assert_int_equal(record.free.seq, 7);
	assert_int_equal(record.free.took_us, 3);
	/* Names that begin as ours, and go on as what stands behind one. */
	read_fine(FREE_HEAD "\"seq2:\":1,\"device\":3,\"de\":4," FREE_TAIL, &record);
	assert_int_equal(record.free.seq, 7);
	assert_int_equal(record.free.device, -1);
	read_fine(FREE_HEAD "\"later\":" DEEP64("[") DEEP64("]") "," FREE_TAIL, &record);
	read_fine("{\"v\":1,\"kind\":\"later\",\"t\":2.5,\"seq\":\"of another meaning\"}", &record);
	assert_int_equal(record.kind, SPILL_KINDS_COUNT);
	assert_int_equal(record.version, 1);
	assert_int_equal(record.time_us, 2500000);
}

/* It grows when the meaning of a member does. */
TEST(a_later_version_is_not_looked_into)
{
	struct spill_record record;

	read_fine("{\"v\":2,\"kind\":\"free\",\"t\":2.5,\"seq\":\"of another meaning\"}", &record);
	assert_int_equal(record.kind, SPILL_KINDS_COUNT);
	assert_int_equal(record.version, 2);
	assert_int_equal(record.time_us, 2500000);
}

TEST(the_order_of_members_and_blanks_do_not_matter)
{
	struct spill_record record;

	read_fine(
	    "\t{ \"us\" : 3 , "
	    "\"place\":\"split\",\"ptr\":\"0xabc\",\"bytes\":4096,\"tid\":-2,\"dev\":5,\"reason\":\"reset\","
	    "\"order\":9,\"seq\":7,\"t\":1,\"kind\":\"free\",\"v\":1 } \r\n",
	    &record);
	assert_int_equal(record.kind, SPILL_KIND_FREE);
	assert_int_equal(record.free.time_us, 1000000);
	assert_int_equal(record.free.seq, 7);
	assert_int_equal(record.free.order, 9);
	assert_int_equal(record.free.tid, -2);
	assert_int_equal(record.free.device, 5);
	assert_int_equal(record.free.bytes, 4096);
	assert_int_equal(record.free.ptr, 0xabc);
	assert_int_equal(record.free.place, SPILL_PLACE_SPLIT);
	assert_string_equal(record.free.reason, "reset");
	assert_int_equal(record.free.took_us, 3);
}

TEST(what_is_left_out_is_nothing)
{
	struct spill_record record;

	memset(&record, 0xA5, sizeof(record));
	read_fine("{\"v\":1,\"kind\":\"alloc\",\"t\":1.5,\"seq\":7,\"order\":9,\"tid\":2,\"bytes\":1,\"ptr\":"
	          "\"0x1\",\"place\":\"device\",\"us\":3}",
	          &record);
	assert_int_equal(record.alloc.device, -1);
	assert_null(record.alloc.api);
	assert_null(record.alloc.caller);
	assert_null(record.alloc.reason);
	assert_null(record.alloc.rule);
	assert_null(record.alloc.would);
	assert_int_equal(record.alloc.held.device, 0);
	assert_int_equal(record.alloc.held.host, 0);
	assert_int_equal(record.alloc.held.managed, 0);
	assert_int_equal(record.alloc.attempts, 0);
}

TEST(texts_are_decoded)
{
	struct spill_record record;

	read_fine(NOTE("\"code\":\"\",\"text\":\"\\\"\\\\\\/"
	               "\\b\\f\\n\\r\\t\\u00e4\\u20AC\\ud83d\\ude00\\u007f\xC3\xA4\""),
	          &record);
	assert_string_equal(record.note.code, "");
	assert_string_equal(record.note.text,
	                    "\"\\/\b\f\n\r\t\xC3\xA4\xE2\x82\xAC\xF0\x9F\x98\x80\x7f\xC3\xA4");
	assert_int_equal(record.note.time_us, 500000);
}

/* A later version may have one more place, and tell of more attempts than there is room for. */
TEST(more_than_there_is_room_for)
{
	struct spill_record record;

	read_fine(
	    "{\"v\":1,\"kind\":\"alloc\",\"t\":1.5,\"seq\":7,\"order\":9,\"tid\":2,\"bytes\":1,\"ptr\":"
	    "\"0x1\",\"place\":\"moon\",\"tried\":["
	    "{\"place\":\"first\",\"error\":\"e\"}" TEN(",{\"place\":\"a\",\"error\":\"e\"}") "],\"us\":3}",
	    &record);
	assert_int_equal(record.alloc.place, SPILL_PLACES);
	assert_int_equal(record.alloc.attempts, SPILL_ATTEMPTS);
	assert_string_equal(record.alloc.tried[0].place, "first");
	assert_string_equal(record.alloc.tried[SPILL_ATTEMPTS - 1].place, "a");
	assert_int_equal(record.alloc.took_us, 3);
}
