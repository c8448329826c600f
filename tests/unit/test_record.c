/* The lines, byte by byte: names and forms are fixed, because old logs stay readable for ever. */
#include "unit.h"

#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "json.h"
#include "record.h"
#include "record_shape.h"

static char buffer[8192];

static void expect(size_t length, const char *line)
{
	assert_true(length < sizeof(buffer));
	buffer[length] = '\0';
	assert_string_equal(buffer, line);
}

/* The words that record.def allows for each member. */
static const struct {
	const char *key, *words;
} allowed[] = {
// clang-format off
#define OBJECT(id)
#define HEAD(key, how, text)
#define NEEDED(key, how, field, words, text) {key, words},
#define OPTIONAL(key, how, field, words, text) {key, words},
#define INNER(key, must, field, inner, text)
#define FIGURES(key, field, number, inner, text)
#define SEVERAL(key, how, field, counted, room, inner, text)
#define END(id)
#define KINDS_BEGIN
#define KIND(kind, id)
#define KINDS_END
#include "record.def"
    // clang-format on
};

static bool is_allowed(const char *key, const char *word)
{
	size_t length = strlen(word);

	for (size_t i = 0; i < sizeof(allowed) / sizeof(allowed[0]); i++) {
		const char *at = strcmp(allowed[i].key, key) ? NULL : strstr(allowed[i].words, word);

		if (at && (at == allowed[i].words || at[-1] == ' ') && strchr(",", at[length]))
			return true;
	}
	return false;
}

/* Words of the list that are no name of an enumerator. */
static unsigned unknown_words(const char *key, unsigned count, const char *(*name)(unsigned))
{
	unsigned unknown = 0;

	for (size_t i = 0; i < sizeof(allowed) / sizeof(allowed[0]); i++) {
		char words[256], *rest = words;

		snprintf(words, sizeof(words), "%s", strcmp(allowed[i].key, key) ? "" : allowed[i].words);
		for (char *word = strsep(&rest, ", "); word; word = strsep(&rest, ", ")) {
			bool known = !*word;

			for (unsigned each = 0; each < count; each++)
				known |= !strcmp(word, name(each));
			unknown += !known;
		}
	}
	return unknown;
}

static const char *reason_name(unsigned reason)
{
	return spill_reason_name((enum spill_reason)reason);
}

static const char *move_name(unsigned move)
{
	return spill_move_name((enum spill_move_kind)move);
}

TEST(reasons_and_moves_are_those_of_the_format)
{
	for (unsigned reason = 0; reason < SPILL_REASONS_COUNT; reason++)
		assert_true(is_allowed("reason", reason_name(reason)));
	for (unsigned move = 0; move < SPILL_MOVES_COUNT; move++)
		assert_true(is_allowed("what", move_name(move)));
	assert_int_equal(unknown_words("reason", SPILL_REASONS_COUNT, reason_name), 0);
	assert_int_equal(unknown_words("what", SPILL_MOVES_COUNT, move_name), 0);
}

static const struct spill_record_alloc split = {
    .time_us = 12345678,
    .seq = 7,
    .order = 9,
    .tid = 4711,
    .device = 0,
    .api = "cuMemAlloc_v2",
    .caller = "libggml-cuda.so+0x1a2b",
    .requester = "libllama.so+0x10",
    .bytes = 7555858432,
    .ptr = 0x302000000,
    .place = SPILL_PLACE_SPLIT,
    .held = {.device = 5368709120, .host = 2187149312},
    .reason = "oom",
    .rule = "default",
    .attempts = 1,
    .tried = {{"device", "CUDA_ERROR_OUT_OF_MEMORY"}},
    .took_us = 401234,
};

#define SPLIT_HEAD \
	"{\"v\":1,\"kind\":\"alloc\",\"t\":12.345678,\"seq\":7,\"order\":9,\"tid\":4711,\"dev\":0,\"api\":" \
	"\"cuMemAlloc_" \
	"v2\"," \
	"\"caller\":\"libggml-cuda.so+0x1a2b\",\"requester\":\"libllama.so+0x10\",\"bytes\":7555858432," \
	"\"ptr\":\"0x302000000\",\"place\":" \
	"\"split\"," \
	"\"device_bytes\":5368709120,\"host_bytes\":2187149312,"
#define SPLIT_TAIL \
	"\"reason\":\"oom\",\"rule\":\"default\"," \
	"\"tried\":[{\"place\":\"device\",\"error\":\"CUDA_ERROR_OUT_OF_MEMORY\"}],\"us\":401234}\n"

/* The example of the public contract, letter by letter. */
TEST(alloc_is_the_contracts_example)
{
	expect(spill_record_alloc(&split, buffer, sizeof(buffer)), SPLIT_HEAD SPLIT_TAIL);
}

TEST(alloc_leaves_out_what_there_is_not)
{
	const struct spill_record_alloc plain = {.device = -1, .tid = 1, .place = SPILL_PLACE_DEVICE};

	expect(spill_record_alloc(&plain, buffer, sizeof(buffer)),
	       "{\"v\":1,\"kind\":\"alloc\",\"t\":0.000000,\"seq\":0,\"order\":0,\"tid\":1,\"bytes\":0,"
	       "\"ptr\":\"0x0\","
	       "\"place\":\"device\",\"us\":0}\n");
}

TEST(alloc_at_the_ends_of_the_numbers)
{
	const struct spill_record_alloc most = {
	    .time_us = UINT64_MAX,
	    .seq = UINT64_MAX,
	    .order = UINT64_MAX,
	    .tid = INT32_MIN,
	    .device = INT32_MAX,
	    .bytes = UINT64_MAX,
	    .ptr = UINT64_MAX,
	    .place = SPILL_PLACE_MANAGED,
	    .held = {.managed = UINT64_MAX},
	    .would = "host",
	    .took_us = 1,
	};

	expect(spill_record_alloc(&most, buffer, sizeof(buffer)),
	       "{\"v\":1,\"kind\":\"alloc\",\"t\":18446744073709.551615,\"seq\":18446744073709551615,"
	       "\"order\":18446744073709551615,\"tid\":-2147483648,\"dev\":2147483647,\"bytes\":"
	       "18446744073709551615,"
	       "\"ptr\":\"0xffffffffffffffff\",\"place\":\"managed\",\"managed_bytes\":18446744073709551615,"
	       "\"would\":\"host\",\"us\":1}\n");
}

TEST(free_names_its_alloc)
{
	const struct spill_record_free record = {
	    .time_us = 1000001,
	    .seq = 7,
	    .order = 9,
	    .tid = 2,
	    .device = 1,
	    .api = "cudaFree",
	    .caller = "a.out+0x10",
	    .ptr = 0xabc,
	    .bytes = 4096,
	    .place = SPILL_PLACE_HOST,
	    .reason = "free",
	    .took_us = 3,
	};

	expect(spill_record_free(&record, buffer, sizeof(buffer)),
	       "{\"v\":1,\"kind\":\"free\",\"t\":1.000001,\"seq\":7,\"order\":9,\"tid\":2,\"dev\":1,\"api\":"
	       "\"cudaFree\","
	       "\"caller\":\"a.out+0x10\",\"bytes\":4096,\"ptr\":\"0xabc\",\"place\":\"host\",\"reason\":"
	       "\"free\","
	       "\"us\":3}\n");
}

TEST(move_tells_what_is_where_now)
{
	const struct spill_record_move record = {
	    .time_us = 3500000,
	    .seq = 7,
	    .order = 12,
	    .tid = 2,
	    .device = 1,
	    .what = "demote",
	    .api = "cuMemCreate",
	    .caller = "libggml-cuda.so+0x10",
	    .bytes = 134217728,
	    .chunks = 2,
	    .held = {.device = 67108864, .host = 134217728},
	    .reason = "oom",
	    .took_us = 30123,
	};
	const struct spill_record_move back = {
	    .tid = 2, .what = "promote", .bytes = 8, .chunks = 1, .held = {.device = 8}, .reason = "free"};

	expect(
	    spill_record_move(&record, buffer, sizeof(buffer)),
	    "{\"v\":1,\"kind\":\"move\",\"t\":3.500000,\"seq\":7,\"order\":12,\"what\":\"demote\",\"tid\":2,"
	    "\"dev\":1,\"api\":\"cuMemCreate\",\"caller\":\"libggml-cuda.so+0x10\",\"bytes\":134217728,"
	    "\"chunks\":2,\"device_bytes\":67108864,\"host_bytes\":134217728,\"reason\":\"oom\",\"us\":30123}"
	    "\n");
	/* Who is it for: nobody; and the host side says that it is empty. */
	expect(
	    spill_record_move(&back, buffer, sizeof(buffer)),
	    "{\"v\":1,\"kind\":\"move\",\"t\":0.000000,\"seq\":0,\"order\":0,\"what\":\"promote\",\"tid\":2,"
	    "\"dev\":0,\"bytes\":8,\"chunks\":1,\"device_bytes\":8,\"host_bytes\":0,\"reason\":\"free\","
	    "\"us\":0}\n");
}

TEST(oom_tells_who_holds_what)
{
	const struct spill_record_oom record = {
	    .time_us = 5,
	    .tid = 2,
	    .device = 0,
	    .api = "hipMalloc",
	    .bytes = 10,
	    .free = 3,
	    .total = 100,
	    .ours = 90,
	    .live = {.device = 97},
	    .rule = "default",
	    .refused_by = "host.limit",
	    .refusal = {.limit = 11, .held = 12, .asked = 13, .room = 14},
	    .attempts = 2,
	    .tried = {{"device", "hipErrorOutOfMemory"}, {"host", "host.limit"}},
	    .holders = 2,
	    .top = {{"libA.so+0x1", "hipMalloc", 4, 90, SPILL_PLACE_DEVICE},
	            {NULL, "hipMalloc", 5, 7, SPILL_PLACE_MANAGED}},
	    .callers = 2,
	    .by_caller = {{"libA.so+0x1", 3, {1, 2, 3}, "a.py:f"}, {NULL, 1, {.host = 4}}},
	    .places = 1,
	    .by_place = {{"split", 2, {5, 6, 7}}},
	};

	expect(
	    spill_record_oom(&record, buffer, sizeof(buffer)),
	    "{\"v\":1,\"kind\":\"oom\",\"t\":0.000005,\"tid\":2,\"dev\":0,\"api\":\"hipMalloc\",\"bytes\":10,"
	    "\"free\":3,\"total\":100,\"ours\":90,"
	    "\"live\":{\"device_bytes\":97,\"host_bytes\":0,\"managed_bytes\":0},"
	    "\"rule\":\"default\",\"refused_by\":\"host.limit\","
	    "\"refusal\":{\"limit\":11,\"held\":12,\"asked\":13,\"room\":14},"
	    "\"tried\":[{\"place\":\"device\",\"error\":\"hipErrorOutOfMemory\"},"
	    "{\"place\":\"host\",\"error\":\"host.limit\"}],"
	    "\"places\":[{\"place\":\"split\",\"count\":2,\"device_bytes\":5,\"host_bytes\":6,"
	    "\"managed_bytes\":7}],"
	    "\"callers\":[{\"caller\":\"libA.so+0x1\",\"requester\":\"a.py:f\",\"count\":3,\"device_bytes\":"
	    "1,\"host_bytes\":2,"
	    "\"managed_bytes\":3},{\"count\":1,\"device_bytes\":0,\"host_bytes\":4,\"managed_bytes\":0}],"
	    "\"holders\":[{\"seq\":4,\"bytes\":90,\"place\":\"device\",\"api\":\"hipMalloc\","
	    "\"caller\":\"libA.so+0x1\"},{\"seq\":5,\"bytes\":7,\"place\":\"managed\",\"api\":\"hipMalloc\"}]"
	    "}\n");
}

TEST(file_of_a_caller)
{
	const struct spill_record_file file = {1, "libfoo.so", "/a \"b\"/libfoo.so", "00ff"};
	const struct spill_record_file none = {2, "libfoo.so", "/libfoo.so", NULL};

	expect(spill_record_file(&file, buffer, sizeof(buffer)),
	       "{\"v\":1,\"kind\":\"file\",\"t\":0.000001,\"name\":\"libfoo.so\","
	       "\"path\":\"/a \\\"b\\\"/libfoo.so\",\"build_id\":\"00ff\"}\n");
	expect(spill_record_file(&none, buffer, sizeof(buffer)),
	       "{\"v\":1,\"kind\":\"file\",\"t\":0.000002,\"name\":\"libfoo.so\","
	       "\"path\":\"/libfoo.so\"}\n");
}

TEST(note_is_one_line)
{
	expect(
	    spill_record_note(1, 2, "no-vmm", "a\nb", buffer, sizeof(buffer)),
	    "{\"v\":1,\"kind\":\"note\",\"t\":0.000001,\"tid\":2,\"code\":\"no-vmm\",\"text\":\"a\\nb\"}\n");
}

TEST(drop_has_the_sums)
{
	const struct spill_record_drop record = {
	    .time_us = 2000000,
	    .sums = {[SPILL_DROP_ALLOC] = {12, {1, 0, 2}}, [SPILL_DROP_DEMOTE] = {3, {.host = 7}}},
	    .peak = {8, 9, 10},
	};

	expect(spill_record_drop(&record, buffer, sizeof(buffer)),
	       "{\"v\":1,\"kind\":\"drop\",\"t\":2.000000,"
	       "\"alloc\":{\"count\":12,\"device_bytes\":1,\"host_bytes\":0,\"managed_bytes\":2},"
	       "\"demote\":{\"count\":3,\"device_bytes\":0,\"host_bytes\":7,\"managed_bytes\":0},"
	       "\"peak\":{\"device_bytes\":8,\"host_bytes\":9,\"managed_bytes\":10}}\n");
}

TEST(sum_has_a_call_site)
{
	const struct spill_record_sum record = {
	    .time_us = 2000000,
	    .order = 12,
	    .level = {.device = 5, .device_peak = 6, .all = 7, .all_peak = 8},
	    .device = 1,
	    .api = "cudaMallocAsync",
	    .caller = "prog+0x1",
	    .rule = "default",
	    .allocs = {3, {.device = 30}},
	    .live = 10,
	    .peak = 20,
	    .largest = {4, 15},
	};

	expect(spill_record_sum(&record, buffer, sizeof(buffer)),
	       "{\"v\":1,\"kind\":\"sum\",\"t\":2.000000,\"order\":12,"
	       "\"held\":{\"device_bytes\":5,\"device_peak\":6,\"all_bytes\":7,\"all_peak\":8},"
	       "\"dev\":1,\"api\":\"cudaMallocAsync\",\"caller\":\"prog+0x1\",\"rule\":\"default\","
	       "\"alloc\":{\"count\":3,\"device_bytes\":30,\"host_bytes\":0,\"managed_bytes\":0},"
	       "\"live_bytes\":10,\"peak_bytes\":20,\"largest\":{\"seq\":4,\"bytes\":15}}\n");
}

/* The line that is made on a path where no more room can be had (log_max.h: SPILL_LOG_MAX_LINE). */
TEST(the_longest_drop_line)
{
	const struct spill_bytes most = {UINT64_MAX, UINT64_MAX, UINT64_MAX};
	struct spill_record_drop record = {.time_us = UINT64_MAX, .peak = most};

	for (unsigned i = 0; i < SPILL_DROPS_COUNT; i++)
		record.sums[i] = (struct spill_sum){UINT64_MAX, most};
	assert_in_range(spill_record_drop(&record, buffer, sizeof(buffer)), 800, 1280);
}

TEST(exit_has_the_totals)
{
	const struct spill_totals totals = {.allocs = 1,
	                                    .frees = 2,
	                                    .spills = 3,
	                                    .ooms = 4,
	                                    .demotions = 14,
	                                    .promotions = 15,
	                                    .demoted = 16,
	                                    .promoted = 17,
	                                    .live = {5, 6, 7},
	                                    .peak = {8, 9, 10},
	                                    .spilled = {11, 12, 13}};
	const struct spill_hits hits[] = {{"cuMemAlloc_v2", "proc", 9}, {"cudaMalloc", "link", 1}};

	expect(spill_record_exit(2000000, "exit", &totals, hits, 2, buffer, sizeof(buffer)),
	       "{\"v\":1,\"kind\":\"exit\",\"t\":2.000000,\"how\":\"exit\",\"allocs\":1,\"frees\":2,"
	       "\"spills\":3,"
	       "\"ooms\":4,\"demotions\":14,\"promotions\":15,\"demoted_bytes\":16,\"promoted_bytes\":17,"
	       "\"live\":{\"device_bytes\":5,\"host_bytes\":6,\"managed_bytes\":7},"
	       "\"peak\":{\"device_bytes\":8,\"host_bytes\":9,\"managed_bytes\":10},"
	       "\"spilled\":{\"device_bytes\":11,\"host_bytes\":12,\"managed_bytes\":13},"
	       "\"hits\":[{\"symbol\":\"cuMemAlloc_v2\",\"way\":\"proc\",\"count\":9},"
	       "{\"symbol\":\"cudaMalloc\",\"way\":\"link\",\"count\":1}]}\n");
}

/* At every size one too small: nothing, and no byte behind the buffer. */
TEST(a_line_is_never_cut)
{
	size_t whole = spill_record_alloc(&split, buffer, sizeof(buffer));

	for (size_t size = 0; size < whole; size++) {
		memset(buffer, '#', sizeof(buffer));
		assert_int_equal(spill_record_alloc(&split, buffer, size), 0);
		assert_int_equal(buffer[size], '#');
	}
	assert_int_equal(spill_record_alloc(&split, buffer, whole), whole);
}

TEST(counts_beyond_the_arrays_are_harmless)
{
	struct spill_record_oom record = {.attempts = 1000, .holders = 1000, .callers = 1000, .places = 1000};

	assert_true(spill_record_oom(&record, buffer, sizeof(buffer)) > 0);
}

TEST(kinds_have_names)
{
	assert_string_equal(spill_kind_name(SPILL_KIND_START), "start");
	assert_string_equal(spill_kind_name(SPILL_KIND_MOVE), "move");
	assert_string_equal(spill_kind_name(SPILL_KIND_EXIT), "exit");
	assert_null(spill_kind_name(SPILL_KINDS_COUNT));
}

static void string_is(const char *text, const char *written)
{
	struct spill_json json;

	spill_json_begin(&json, buffer, sizeof(buffer));
	spill_json_string(&json, text);
	expect(spill_json_end_line(&json), written);
}

TEST(strings_are_escaped)
{
	string_is("plain", "\"plain\"\n");
	string_is("\"\\/", "\"\\\"\\\\/\"\n");
	string_is("\b\f\n\r\t\x01\x1f\x7f", "\"\\u0008\\u000c\\n\\r\\t\\u0001\\u001f\\u007f\"\n");
	string_is("\xC2\x9B", "\"\\u009b\"\n"); /* a terminal's one-byte escape */
	string_is("\xE2\x80\xAE\xE2\x81\xA6\xD8\x9C\xE2\x80\xA8", "\"\\u202e\\u2066\\u061c\\u2028\"\n");
	string_is("\xE2\x80\xA7\xE2\x80\xAF\xD8\x9B\xEF\xBF\xBD",
	          "\"\xE2\x80\xA7\xE2\x80\xAF\xD8\x9B\xEF\xBF\xBD\"\n");
	string_is("\xC3\xA4\xE2\x82\xAC\xF0\x9F\x98\x80", "\"\xC3\xA4\xE2\x82\xAC\xF0\x9F\x98\x80\"\n");
	string_is(NULL, "null\n");
}

#define FFFD "\xEF\xBF\xBD"

TEST(what_is_not_utf8_is_replaced)
{
	string_is("a\xFFz", "\"a" FFFD "z\"\n");
	string_is("\xC0\xAF", "\"" FFFD FFFD "\"\n");                   /* overlong / */
	string_is("\xED\xA0\x80", "\"" FFFD FFFD FFFD "\"\n");          /* surrogate */
	string_is("\xF4\x90\x80\x80", "\"" FFFD FFFD FFFD FFFD "\"\n"); /* above U+10FFFF */
	string_is("\xE0\x80\x80", "\"" FFFD FFFD FFFD "\"\n");
	string_is("\xE2\x82", "\"" FFFD FFFD "\"\n"); /* cut short */
	string_is("\xE2\"", "\"" FFFD "\\\"\"\n");    /* a quote inside must still be seen */
}

/* A locale with a decimal comma, made here, because machines rarely have one. */
static int with_a_comma(void)
{
	char place[] = "/tmp/spill-locale-XXXXXX", command[256];
	int status = 77;

	if (!mkdtemp(place))
		return 1;
	snprintf(command, sizeof(command), "localedef -i de_DE -f UTF-8 %s/de_DE.UTF-8 >/dev/null 2>&1",
	         place);
	(void)!system(command);
	setenv("LOCPATH", place, 1);
	if (setlocale(LC_ALL, "de_DE.UTF-8") && strcmp(localeconv()->decimal_point, ",") == 0) {
		size_t length = spill_record_alloc(&split, buffer, sizeof(buffer));

		snprintf(command, sizeof(command), "%.1f", 1.5);
		status = strcmp(command, "1,5") != 0 || length != strlen(SPLIT_HEAD SPLIT_TAIL) ||
		         memcmp(buffer, SPLIT_HEAD SPLIT_TAIL, length) != 0;
	}
	snprintf(command, sizeof(command), "rm -r %s", place);
	(void)!system(command);
	return status;
}

TEST(a_comma_locale_changes_nothing)
{
	int status;
	pid_t pid = fork();

	if (pid == 0)
		_exit(with_a_comma());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WEXITSTATUS(status) == 77) {
		print_message("no de_DE locale: Debian's package locales has its source\n");
		skip();
	}
	assert_int_equal(status, 0);
}
