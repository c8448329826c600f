/* The block about an out of memory, and what would have helped: by value. */
#include "unit.h"

#include <stdio.h>
#include <string.h>

#include "oom_report.h"
#include "run_story.h"
#include "stderr_block.h"

#define MIB ((uint64_t)1 << 20)
#define GIB ((uint64_t)1 << 30)

static char buffer[SPILL_STDERR_BLOCK];

/* 2 GiB more than a device of 8 GiB has, after a split that had room on the host. */
static struct spill_record_oom example(void)
{
	return (struct spill_record_oom){
	    .device = 0,
	    .api = "cudaMalloc",
	    .caller = "libggml-cuda.so+0x1a2b",
	    .bytes = 3 * GIB,
	    .free = GIB,
	    .total = 8 * GIB,
	    .ours = 5 * GIB,
	    .live = {.device = 8 * GIB, .host = 2 * GIB},
	    .rule = "default",
	    .refused_by = "host.limit",
	    .refusal = {.limit = 4 * GIB, .held = 2 * GIB, .asked = 3 * GIB, .room = 100 * GIB},
	    .attempts = 3,
	    .tried = {{"device", "CUDA_ERROR_OUT_OF_MEMORY"},
	              {"split", "host.limit"},
	              {"host", "host.limit"}},
	    .holders = 1,
	    .top = {{"libggml-cuda.so+0x1a2b", "cudaMalloc", 4, 6 * GIB, SPILL_PLACE_SPLIT}},
	    .callers = 2,
	    .by_caller = {{"libggml-cuda.so+0x1a2b", 3, {.device = 4 * GIB, .host = 2 * GIB}},
	                  {"libfoo.so+0x10", 1, {.device = GIB / 2}}},
	    .places = 2,
	    .by_place = {{"split", 1, {.device = 3 * GIB, .host = 2 * GIB}},
	                 {"device", 4, {.device = 2 * GIB}}},
	};
}

static const struct spill_totals totals = {
    .allocs = 12,
    .spills = 1,
    .spilled = {.host = 2 * GIB},
    .demotions = 2,
    .demoted = GIB,
    .peak = {.device = 8 * GIB},
    .away = {.peak = 3 * GIB, .wanted = 10 * GIB, .moves_us = 300000},
};

static const struct spill_report_process mortem = {.program = "llama-server",
                                                   .log = "/home/me/llama-server-4711.jsonl",
                                                   .totals = &totals,
                                                   .run_us = 15000000};

static size_t told(const struct spill_record_oom *oom)
{
	size_t length = spill_oom_report(&mortem, oom, buffer, sizeof(buffer));

	assert_int_equal(length, strlen(buffer));
	return length;
}

/* In the order in which people ask. */
TEST(the_whole_block)
{
	const struct spill_record_oom oom = example();

	told(&oom);
	assert_string_equal(
	    buffer,
	    "spill: llama-server: out of memory: 3.00 GiB of device 0 asked by libggml-cuda.so+0x1a2b "
	    "(cudaMalloc)\n"
	    "spill:   spilled before: up to 3.00 GiB was in host memory; at most 10.00 GiB was wanted at "
	    "once, and at most 8.00 GiB was on the card, at different moments; "
	    "moves held the program up for 0.30 s, 2 % of the 15.0 s; the time that kernels lost by reading "
	    "it there is not known\n"
	    "spill:     2.00 GiB host, in 1 of 12 allocations; 1.00 GiB moved to the host to make room\n"
	    "spill:   this process holds 8.00 GiB device, 2.00 GiB host (3.00 GiB on other devices); by "
	    "place: split 5.00 GiB in 1, "
	    "device 2.00 GiB in 4; by caller:\n"
	    "spill:     6.00 GiB  libggml-cuda.so+0x1a2b  in 3 allocations: 4.00 GiB device, 2.00 GiB host\n"
	    "spill:     512.00 MiB  libfoo.so+0x10  in 1 allocation: 512.00 MiB device\n"
	    "spill:     512.00 MiB  others\n"
	    "spill:   device 0: 1.00 GiB free of 8.00 GiB; 5.00 GiB held by this process; 2.00 GiB held "
	    "by other programs and by contexts and code, this program's too (nvidia-smi or rocm-smi shows "
	    "whose)\n"
	    "spill:   refused by host.limit (rule default): 4.00 GiB allowed, 2.00 GiB in use, 3.00 GiB more "
	    "asked\n"
	    "spill:   tried device: CUDA_ERROR_OUT_OF_MEMORY, split: host.limit, host: host.limit\n"
	    "spill:   what would have helped: host.limit = 5GiB at least (it is 4.00 GiB; more if the "
	    "program goes on to ask); or 2.00 GiB less in use on the device, to get past this request (a "
	    "smaller batch, model or -ngl, or a shorter context length): libggml-cuda.so+0x1a2b holds "
	    "6.00 GiB in 3 allocations\n"
	    "spill:   log /home/me/llama-server-4711.jsonl\n");
}

TEST(what_there_is_not_is_not_told)
{
	const struct spill_totals none = {0};
	const struct spill_report_process bare = {.program = "a", .log = "", .totals = &none};
	const struct spill_record_oom oom = {.device = -1, .bytes = 1, .refused_by = "driver"};

	spill_oom_report(&bare, &oom, buffer, sizeof(buffer));
	assert_string_equal(
	    buffer, "spill: a: out of memory: 1 B asked by ? (?)\n"
	            "spill:   spilled before: nothing\n"
	            "spill:   this process holds nothing\n"
	            "spill:   refused by driver (rule ?)\n"
	            "spill:   what would have helped: a place for memory that does not fit: none was tried "
	            "(oom.chain, over in a rule); or 1 B less in use on the device, to get past this "
	            "request (a smaller batch or model, or a shorter context length)\n"
	            "spill:   no log is written (log.path, log.level)\n");
}

TEST(others_have_a_line_beside_callers_if_they_hold_something)
{
	struct spill_record_oom oom = example();

	oom.by_caller[1].held.device += 512ull << 20;
	told(&oom);
	assert_null(strstr(buffer, "  others\n"));
	oom = example();
	oom.callers = 0;
	told(&oom);
	assert_null(strstr(buffer, "  others\n"));
}

/* By others than this process: never less than nothing, whatever the two figures say. */
TEST(what_others_have_of_the_device)
{
	struct spill_record_oom oom = example();

	oom.ours = 9 * GIB;
	told(&oom);
	assert_non_null(strstr(buffer, "9.00 GiB held by this process; 0 B held by other programs"));
}

static unsigned lines(void)
{
	unsigned count = 0;

	for (const char *at = buffer; (at = strchr(at, '\n')); at++)
		count++;
	return count;
}

static char longest[4097];

/* All that there can be, all of it as long as it can be: a block all the same, with its last lines. */
TEST(the_largest_block)
{
	struct spill_record_oom oom = example();
	const struct spill_report_process large = {.program = longest, .log = longest, .totals = &totals};
	const struct spill_bytes most = {UINT64_MAX / 31, UINT64_MAX / 31, UINT64_MAX / 31};

	memset(longest, 'x', sizeof(longest) - 1);
	oom.api = oom.caller = oom.rule = longest;
	oom.attempts = SPILL_ATTEMPTS;
	for (unsigned i = 0; i < SPILL_ATTEMPTS; i++)
		oom.tried[i] =
		    (struct spill_attempt){"honest_first", "CUDA_ERROR_UNSUPPORTED_LIMIT_AND_MORE"};
	oom.callers = SPILL_CALLERS;
	for (unsigned i = 0; i < SPILL_CALLERS; i++)
		oom.by_caller[i] = (struct spill_group){longest, UINT64_MAX, most};
	oom.places = SPILL_PLACES;
	for (unsigned i = 0; i < SPILL_PLACES; i++)
		oom.by_place[i] =
		    (struct spill_group){spill_place_name((enum spill_place)i), UINT64_MAX, most};
	oom.live = (struct spill_bytes){UINT64_MAX / 3, UINT64_MAX / 3, UINT64_MAX / 3};
	oom.bytes = oom.total = oom.ours = UINT64_MAX;
	assert_true(spill_oom_report(&large, &oom, buffer, sizeof(buffer)) < SPILL_STDERR_BLOCK);
	assert_int_equal(buffer[strlen(buffer) - 1], '\n');
	assert_non_null(strstr(buffer, "what would have helped: "));
	assert_non_null(strstr(buffer, "spill:   log …xxx"));
	assert_non_null(strstr(buffer, "  others\n")); /* for those that had no room */
	assert_in_range(lines(), 10, 20);
	for (const char *at = buffer; *at; at = strchr(at, '\n') + 1)
		assert_int_equal(strncmp(at, "spill: ", 7), 0);
}

TEST(all_callers_where_names_are_usual)
{
	struct spill_record_oom oom = example();
	static char names[SPILL_CALLERS][32];

	oom.callers = SPILL_CALLERS;
	for (unsigned i = 0; i < SPILL_CALLERS; i++) {
		snprintf(names[i], sizeof(names[i]), "libtorch_cuda.so+0x%x", i);
		oom.by_caller[i] = (struct spill_group){names[i], 1, {.device = MIB}};
	}
	told(&oom);
	for (unsigned i = 0; i < SPILL_CALLERS; i++)
		assert_non_null(strstr(buffer, names[i]));
	assert_int_equal(lines(), 20);
}

/* A name is what its program made it, and a path may hold anything. */
TEST(nothing_steers_a_terminal)
{
	struct spill_record_oom oom = example();
	const struct spill_report_process hostile = {.program = "a\x1b[2Jb\nspill: \xc2\x9b"
	                                                        "2Jc",
	                                             .log = "/tmp/\x7f\r",
	                                             .totals = &totals};

	oom.caller = oom.by_caller[0].name = "x\ny\x1b";
	spill_oom_report(&hostile, &oom, buffer, sizeof(buffer));
	assert_non_null(strstr(buffer, "spill: a?[2Jb?spill: ?2Jc: out of memory"));
	assert_non_null(strstr(buffer, "x?y?"));
	assert_null(strchr(buffer, '\x1b'));
	assert_null(strstr(buffer, "\xc2\x9b"));
	assert_non_null(strstr(buffer, "log /tmp/??\n"));
	assert_int_equal(lines(), 12);
}

/* Cut in front: the offset and the file's name are at the end. Not within a character. */
TEST(long_names_keep_their_end)
{
	struct spill_record_oom oom = example();
	char name[128] = "";

	for (unsigned i = 0; i < 40; i++)
		strcat(name, "\xC3\xA4"); /* ä */
	strcat(name, "+0x1");
	oom.caller = name;
	told(&oom);
	assert_non_null(strstr(buffer, "asked by …\xC3\xA4\xC3\xA4"));
	assert_non_null(strstr(buffer, "\xC3\xA4+0x1 (cudaMalloc)"));
	assert_null(strstr(buffer, "…\xA4"));
}

static const char *ended(const struct spill_totals *of, struct spill_bytes_by_reason why)
{
	const struct spill_report_process end = {
	    .program = "llama-server", .log = "/tmp/a.jsonl", .totals = of, .run_us = 4000000};
	size_t length = spill_exit_report(&end, "exit", &why, buffer, sizeof(buffer));

	assert_int_equal(length, strlen(buffer));
	return buffer;
}

/* Every figure a different one, to the byte. */
TEST(the_end)
{
	const struct spill_totals all = {
	    .allocs = 12,
	    .frees = 11,
	    .spills = 3,
	    .ooms = 1,
	    .demotions = 2,
	    .promotions = 1,
	    .demoted = GIB,
	    .promoted = GIB / 2,
	    .live = {1, 2, 3},
	    .peak = {4 * GIB, 3 * GIB, 5},
	    .spilled = {.host = 2 * GIB + 1, .managed = 7},
	    .away = {3 * GIB, 6 * GIB, 20000, {3 * GIB, 9 * GIB, 1500000, 2000000}}};

	assert_string_equal(
	    ended(&all, (struct spill_bytes_by_reason){.oom = GIB, .limit = GIB / 2, .rule = GIB / 2}),
	    "spill: llama-server: ended (exit); up to 3.00 GiB was in host or managed memory; at most "
	    "6.00 GiB was wanted at once, and at most 4.00 GiB was on the card, at different moments; moves "
	    "held the program up for 0.02 s, 1 % of the 4.0 s; kernels lost about 1.5 s to 2.0 s, 50 % of "
	    "the "
	    "4.0 s, by reading about 9.00 GiB of it over the link; 1 refused as out of memory, with those of "
	    "oom.honest_first, which are asked again\n"
	    "spill:   placed off the card: 2.00 GiB host, 7 B managed in 3 of 12 allocations; moved to the "
	    "host "
	    "1.00 GiB in 2 moves, moved back 512.00 MiB in 1 move\n"
	    "spill:   why: 1.00 GiB because the card was full, 512.00 MiB because of device.limit or a "
	    "rule's "
	    "cap, 512.00 MiB because of a rule's place\n"
	    "spill:   to fit: at most 3.00 GiB less in use at once (a smaller batch, model or -ngl, or a "
	    "shorter context length); spill report has it by device, caller and rule\n"
	    "spill:   allocs 12, frees 11, spills 3, ooms 1, demotions 2, promotions 1, demoted_bytes "
	    "1073741824, "
	    "promoted_bytes 536870912\n"
	    "spill:   live bytes: device 1, host 2, managed 3\n"
	    "spill:   peak bytes: device 4294967296, host 3221225472, managed 5\n"
	    "spill:   spilled bytes: device 0, host 2147483649, managed 7\n"
	    "spill:   away: peak_bytes 3221225472, wanted_bytes 6442450944, moves_us 20000\n"
	    "spill:   in place: followed_bytes 3221225472, in_place_bytes 9663676416, in_place_us 1500000, "
	    "in_place_most_us "
	    "2000000\n"
	    "spill:   log /tmp/a.jsonl\n");
}

TEST(the_end_without_a_spill)
{
	struct spill_totals none = {.allocs = 2};

	assert_string_equal(ended(&none, (struct spill_bytes_by_reason){0}),
	                    "spill: llama-server: ended (exit); nothing was in host memory\n"
	                    "spill:   allocs 2, frees 0, spills 0, ooms 0, demotions 0, promotions 0, "
	                    "demoted_bytes 0, promoted_bytes "
	                    "0\n"
	                    "spill:   live bytes: device 0, host 0, managed 0\n"
	                    "spill:   peak bytes: device 0, host 0, managed 0\n"
	                    "spill:   spilled bytes: device 0, host 0, managed 0\n"
	                    "spill:   away: peak_bytes 0, wanted_bytes 0, moves_us 0\n"
	                    "spill:   log /tmp/a.jsonl\n");
	none.demotions = 1;
	none.demoted = 5;
	none.away = (struct spill_away){.peak = 4, .wanted = 9, .moves_us = 1};
	assert_non_null(
	    strstr(ended(&none, (struct spill_bytes_by_reason){0}),
	           "ended (exit); up to 4 B was in host memory; at most 9 B was wanted at once, and "
	           "at most 0 B was on the card, at different moments; moves held the program up "
	           "for less than 0.01 s, less than 1 % of the 4.0 s; the time"));
	assert_null(strstr(buffer, "why"));
	assert_non_null(strstr(buffer, "at most 4 B less in use"));
}

/* The line at the end of a run that spilled: the story, and the log. */
TEST(the_last_line)
{
	struct spill_totals run = totals;
	run.away.in_place.followed = run.away.peak; /* nothing was read there */
	struct spill_report_process end = {
	    .program = "llama-server", .log = "/tmp/a.jsonl", .totals = &run, .run_us = 15000000};

	size_t length = spill_end_line(&end, buffer, sizeof(buffer));
	assert_int_equal(length, strlen(buffer));
	assert_string_equal(buffer,
	                    "spill: llama-server: up to 3.00 GiB was in host memory; at most 10.00 GiB was "
	                    "wanted at once, and at most 8.00 GiB was on the card, at different moments; "
	                    "moves held the program up for 0.30 s, 2 % of the 15.0 s; log "
	                    "/tmp/a.jsonl\n");
	run.away.moves_us = 0;
	end.log = "";
	spill_end_line(&end, buffer, sizeof(buffer));
	assert_string_equal(buffer,
	                    "spill: llama-server: up to 3.00 GiB was in host memory; at most 10.00 GiB was "
	                    "wanted at once, and at most 8.00 GiB was on the card, at different moments\n");
	/* Peaks of one moment, which add up. */
	run.peak.device = 7 * GIB;
	spill_end_line(&end, buffer, sizeof(buffer));
	assert_null(strstr(buffer, "moments"));
	run.away = (struct spill_away){.wanted = GIB};
	assert_int_equal(spill_end_line(&end, buffer, sizeof(buffer)), 0);
}

/* Other programs hold nearly all of the device: they come first. A GiB may be contexts and code. */
TEST(others_are_to_blame)
{
	struct spill_record_oom oom = example();
	const char *others =
	    "what would have helped: 2.00 GiB less of other programs' memory on the device, which "
	    "hold 74.00 GiB of 80.00 GiB with contexts and code (nvidia-smi or rocm-smi shows "
	    "whose); or host.limit = 5GiB at least";

	oom.total = 80 * GIB;
	told(&oom);
	assert_non_null(strstr(buffer, others));
	oom.ours = 0; /* the first request of a program */
	oom.live.device = 0;
	told(&oom);
	assert_non_null(
	    strstr(buffer, "2.00 GiB less of other programs' memory on the device, which hold 79.00 GiB"));
	oom = example();
	oom.ours = 0; /* a log of an older version, which does not tell it */
	told(&oom);
	assert_null(strstr(buffer, "less of other programs"));
	/* They hold what is missing, and contexts. */
	oom = example();
	oom.total = oom.free + oom.ours + 3 * GIB;
	told(&oom);
	assert_null(strstr(buffer, "less of other programs"));
	oom.total++;
	told(&oom);
	assert_non_null(strstr(buffer, "2.00 GiB less of other programs"));
	/* The limit refused: others' memory does not matter. */
	oom.refused_by = "device.limit";
	told(&oom);
	assert_null(strstr(buffer, "less of other programs"));
}

static const char *cost(uint64_t moves_us, uint64_t run_us, bool at_least)
{
	const struct spill_story story = {
	    .away = {.moves_us = moves_us}, .run_us = run_us, .at_least = at_least};
	struct spill_text text = spill_text_begin(buffer, sizeof(buffer));

	spill_story_cost(&text, &story);
	return buffer;
}

TEST(what_moves_cost)
{
	assert_string_equal(cost(0, 1000000, false), "");
	assert_string_equal(cost(4999, 1000000, false),
	                    "moves held the program up for less than 0.01 s, less than 1 % of the 1.0 s");
	assert_string_equal(cost(5000, 1000000, false),
	                    "moves held the program up for 0.01 s, 1 % of the 1.0 s");
	assert_string_equal(cost(61 * 1000000ull, 122 * 1000000ull, true),
	                    "moves held the program up for at least 61.00 s, 50 % of the 122.0 s");
	assert_string_equal(cost(20000, 400000, false),
	                    "moves held the program up for 0.02 s, 5 % of the 0.40 s");
	/* Too short for a share. */
	assert_string_equal(cost(1000, 4999, false), "moves held the program up for less than 0.01 s");
	assert_string_equal(cost(20000, 0, false), "moves held the program up for 0.02 s");
}

static const char *in_place(struct spill_away away, uint64_t run_us)
{
	const struct spill_story story = {.away = away, .run_us = run_us, .any = true};
	struct spill_text text = spill_text_begin(buffer, sizeof(buffer));

	spill_story_in_place(&text, &story);
	return buffer;
}

TEST(what_reading_in_place_costs)
{
	struct spill_away away = {.peak = 4 * GIB, .in_place = {4 * GIB, 118 * GIB, 9800000, 9900000}};

	assert_string_equal(in_place(away, 12100000), "kernels lost about 9.9 s, 82 % of the 12.1 s, by "
	                                              "reading about 118.00 GiB of it over the link");
	away.in_place.us = 3200000;
	assert_string_equal(in_place(away, 12100000),
	                    "kernels lost about 3.2 s to 9.9 s, 82 % of the 12.1 s, "
	                    "by reading about 118.00 GiB of it over the link");
	away.in_place.us = away.in_place.most_us = 4999;
	assert_string_equal(in_place(away, 12100000),
	                    "kernels lost less than 0.01 s, less than 1 % of the 12.1 s, by "
	                    "reading about 118.00 GiB of it over the link");
	away.in_place.us = away.in_place.most_us = 5000;
	assert_string_equal(in_place(away, 12100000),
	                    "kernels lost about 0.01 s, less than 1 % of the 12.1 s, by "
	                    "reading about 118.00 GiB of it over the link");
	away.in_place.us = 4999;
	away.in_place.most_us = 9000;
	assert_string_equal(in_place(away, 12100000),
	                    "kernels lost at most 0.01 s, less than 1 % of the 12.1 s, by "
	                    "reading about 118.00 GiB of it over the link");
	away.in_place.most_us = 9900000;
	away.in_place.us = 2000000;
	assert_string_equal(in_place(away, 12100000), "kernels lost at most 9.9 s, 82 % of the 12.1 s, by "
	                                              "reading about 118.00 GiB of it over the link");
	/* Kernels of several streams take their times side by side, and the program stood still for moves. */
	away.moves_us = 2100000;
	assert_string_equal(in_place(away, 10000000),
	                    "kernels lost about 2.0 s to 7.9 s, 79 % of the 10.0 s, "
	                    "by reading about 118.00 GiB of it over the link");
	/* A quarter of it was managed memory, say. */
	away.in_place.followed = 3 * GIB;
	assert_string_equal(in_place(away, 0), "kernels lost at most 9.9 s by reading about 118.00 GiB of it "
	                                       "over the link (nothing is known of 1.00 GiB more)");
}

/* Never 0 where nobody knows. */
TEST(what_is_not_known_is_told)
{
	struct spill_away away = {.peak = 4 * GIB};

	assert_string_equal(in_place(away, 12100000),
	                    "the time that kernels lost by reading it there is not known");
	away.in_place.followed = GIB;
	assert_string_equal(in_place(away, 12100000),
	                    "the time that kernels lost by reading 3.00 GiB of it there is not known");
	away.in_place.bytes = 9 * GIB;
	assert_string_equal(in_place(away, 12100000),
	                    "the time that kernels lost by reading about 9.00 GiB of "
	                    "it over the link is not known");
	/* Seen, and not read; the rest is rounding. */
	away.in_place = (struct spill_in_place){.followed = 4 * GIB - 4096};
	assert_string_equal(in_place(away, 12100000), "");
	away = (struct spill_away){0};
	assert_string_equal(in_place(away, 12100000), "");
}

static const char *problem, *program; /* of a refused policy; the program's name */

static const char *advice(const struct spill_record_oom *oom)
{
	struct spill_text text = spill_text_begin(buffer, sizeof(buffer));

	spill_advice_oom(&text, oom, program, problem);
	return buffer;
}

static void begins(const char *text, const char *with)
{
	if (strncmp(text, with, strlen(with)) != 0)
		fail_msg("\"%s\" does not begin with \"%s\"", text, with);
}

TEST(by_what_refused)
{
	struct spill_record_oom oom = example();

	/* Exact, so that it works when it is copied; and none that would not do. */
	begins(advice(&oom), "host.limit = 5GiB at least (it is 4.00 GiB; more if the program goes on to "
	                     "ask); or 2.00 GiB less in use");
	oom.refusal.held++;
	begins(advice(&oom), "host.limit = 5121MiB at least (it is 4.00 GiB;");
	oom.refusal.room = GIB;
	begins(advice(&oom),
	       "2.00 GiB more free memory of the host: a larger host.limit alone is not enough;");
	oom.refusal = (struct spill_refusal){0};
	begins(advice(&oom), "a larger host.limit; or 2.00 GiB less");

	oom.refused_by = "host.reserve";
	begins(advice(&oom), "more free memory of the host, or a smaller host.reserve;");
	oom.refusal = (struct spill_refusal){.limit = 2 * GIB, .held = 4 * GIB, .asked = 3 * GIB};
	begins(advice(&oom), "1.00 GiB more free memory of the host, or host.reserve = 1GiB;");
	oom.refusal.held = oom.refusal.asked;
	begins(advice(&oom), "2.00 GiB more free memory of the host, or host.reserve = 0;");
	oom.refusal.held = GIB;
	begins(advice(&oom), "4.00 GiB more free memory of the host; or 2.00 GiB less");
	oom.refused_by = "device.reserve";
	oom.ours = 6 * GIB;
	oom.refusal = (struct spill_refusal){.limit = 64 * MIB, .held = 100 * MIB, .asked = 60 * MIB};
	begins(advice(&oom),
	       "a place for memory that does not fit (oom.chain), or device.reserve = 40MiB, but code that "
	       "is loaded later may then find no room; or 24.00 MiB less in use on the device");
	oom.refusal = (struct spill_refusal){0};
	begins(advice(&oom),
	       "a place for memory that does not fit (oom.chain), or a smaller device.reserve, but");
	/* Arrays, and what else has no other place. */
	oom.attempts = 2;
	oom.tried[0].error = "CUDA_ERROR_OUT_OF_MEMORY";
	oom.tried[1].error = spill_refused_by_name(SPILL_REFUSED_BY_KIND);
	begins(advice(&oom),
	       "room on the device, because this kind of memory cannot be elsewhere, or a smaller "
	       "device.reserve, but");
	oom.attempts = 1; /* what is behind the last attempt is none */
	begins(advice(&oom),
	       "a place for memory that does not fit (oom.chain), or a smaller device.reserve, but");
	oom.attempts = 0;
	oom.refused_by = "host.pressure";
	begins(advice(&oom), "more free memory of the host: other programs lack it, too; or");
	oom.refused_by = "stream capture";
	begins(advice(&oom), "the allocation before the capture begins");
}

/* -ngl is an option of llama.cpp's programs, and of no other. */
TEST(words_of_the_program)
{
	struct spill_record_oom oom = example();

	program = "llama-bench";
	assert_non_null(
	    strstr(advice(&oom), "(a smaller batch, model or -ngl, or a shorter context length)"));
	program = "whisper-cli";
	assert_non_null(strstr(advice(&oom), "(a smaller batch or model, or a shorter context length)"));
	program = NULL;
	assert_null(strstr(advice(&oom), "-ngl"));
}

TEST(of_what_nothing_can_hold)
{
	struct spill_record_oom oom = example();

	oom.bytes = 16 * oom.total; /* too large, and yet what a model may want */
	oom.would = "split";
	begins(advice(&oom), "spill.mode = spill: it would have been tried as split");
	oom.bytes = 17 * oom.total;
	begins(advice(&oom),
	       "nothing: it is more than 16 times the memory of the device; fine if the program only tests");
	oom.bytes = UINT64_MAX;
	begins(advice(&oom), "nothing: it is more than 16 times");
	oom.would = NULL;
	oom.total = 0; /* not known */
	begins(advice(&oom), "host.limit = ");
}

TEST(by_what_refused_on_the_device)
{
	struct spill_record_oom oom = example();

	oom.refused_by = "device.limit";
	oom.free = 8 * GIB;
	oom.refusal =
	    (struct spill_refusal){.limit = 6 * GIB, .held = 5 * GIB, .asked = 3 * GIB, .room = 8 * GIB};
	begins(advice(&oom), "device.limit = 8GiB at least (it is 6.00 GiB; more if the program goes on to "
	                     "ask), or a place for memory above it (oom.chain); or "
	                     "2.00 GiB less in use on the device");
	oom.refusal.room = 3 * GIB; /* just enough */
	begins(advice(&oom), "device.limit = 8GiB at least");
	oom.refusal.room--; /* the device itself has no more */
	begins(advice(&oom), "a place for memory above it (oom.chain); or 2.00 GiB less");
	oom.refusal.room = 8 * GIB;
	oom.refusal.held = UINT64_MAX - 3 * GIB - 1;
	begins(advice(&oom), "device.limit = 18446744073709551614 at least");
	oom.refusal.held++; /* the number of none */
	begins(advice(&oom), "a place for memory above it (oom.chain); or ");
	oom.refusal.held = 5 * GIB;
	oom.refusal.room = GIB;
	oom.refused_by = "rule.cap";
	oom.rule = "mine";
	begins(advice(&oom), "an over = PLACE for memory above it (rule mine)");
	oom.refusal.room = 8 * GIB;
	begins(advice(&oom), "cap = 8GiB at least (it is 6.00 GiB; more if the program goes on to ask), or "
	                     "an over = PLACE for memory above it (rule mine)");
	oom.refusal.asked = 0;
	begins(advice(&oom), "a larger cap of the rule, or an over = PLACE for memory above it (rule mine)");
	oom.refused_by = "rule.place";
	begins(advice(&oom), "another place in the rule: it says refuse (rule mine)");
	oom.refused_by = "rule.over";
	begins(advice(&oom), "another over in the rule: it says refuse (rule mine)");
}

TEST(by_what_was_tried)
{
	struct spill_record_oom oom = example();

	oom.refused_by = "driver";
	begins(advice(&oom), "other places (oom.chain): each place that was tried refused; or");
	oom.attempts = 1;
	begins(advice(&oom),
	       "a place for memory that does not fit: none was tried (oom.chain, over in a rule); or");
	oom.tried[oom.attempts++] =
	    (struct spill_attempt){"split", "this kind of memory cannot be elsewhere"};
	begins(advice(&oom), "room on the device: this kind of memory cannot be elsewhere; or");
	/* What makes room on the device is no other place. */
	oom.tried[1] = (struct spill_attempt){"trim", "CUDA_ERROR_OUT_OF_MEMORY"};
	begins(advice(&oom),
	       "a place for memory that does not fit: none was tried (oom.chain, over in a rule); or");
	oom.tried[1].place = "demote";
	begins(advice(&oom),
	       "a place for memory that does not fit: none was tried (oom.chain, over in a rule); or");
	/* What a later version may try is no place that is known. */
	oom.tried[1] = (struct spill_attempt){"elsewhere", "host.limit"};
	begins(advice(&oom),
	       "a place for memory that does not fit: none was tried (oom.chain, over in a rule); or");
}

TEST(on_purpose_or_observed)
{
	struct spill_record_oom oom = example();

	assert_true(spill_oom_is_final(oom.refused_by));
	oom.would = "split";
	assert_string_equal(advice(&oom), "spill.mode = spill: it would have been tried as split");
	problem = "/etc/spill/spill.conf:2:1: unknown key 'mdoe'";
	assert_string_equal(advice(&oom),
	                    "a policy without this error: /etc/spill/spill.conf:2:1: unknown key "
	                    "'mdoe'; it would have been tried as split");
	problem = NULL;
	oom.would = "refuse";
	begins(advice(&oom), "host.limit = 5GiB");
	oom.would = NULL;
	oom.refused_by = "oom.honest_first";
	assert_false(spill_oom_is_final(oom.refused_by));
	assert_string_equal(advice(&oom),
	                    "nothing: it surfaces once, so that the program frees its caches and asks again");
}

TEST(what_is_on_other_devices)
{
	struct spill_record_oom oom = example();

	assert_int_equal(spill_oom_elsewhere(&oom), 3 * GIB);
	oom.places = 0; /* as the first logs were */
	assert_int_equal(spill_oom_elsewhere(&oom), 0);
	oom.holders = 0; /* nothing is here or on the host */
	assert_int_equal(spill_oom_elsewhere(&oom), 8 * GIB);
}

TEST(who_holds_most)
{
	struct spill_record_oom oom = example();

	oom.by_caller[0].count = 1;
	oom.top[0].bytes *= 4; /* another device's for the most part */
	assert_non_null(
	    strstr(advice(&oom), "context length): libggml-cuda.so+0x1a2b holds 6.00 GiB in one piece"));
	oom.by_caller[0].name = NULL;
	assert_non_null(strstr(advice(&oom), "context length): libggml-cuda.so+0x1a2b holds"));
	oom.top[0].bytes /= 4;
	oom.callers = 0; /* as the first logs were */
	assert_non_null(
	    strstr(advice(&oom), "context length): libggml-cuda.so+0x1a2b holds 6.00 GiB in one piece"));
	oom.bytes = oom.total; /* all of the device would do */
	assert_null(strstr(advice(&oom), "asked at once"));
	oom.bytes = oom.total + 1; /* no less in use would make room for it */
	assert_string_equal(
	    advice(&oom),
	    "host.limit = 5GiB at least (it is 4.00 GiB; more if the program goes on to ask); or less asked "
	    "at once: all of the device is 8.00 GiB");
	oom.bytes = oom.free; /* the device has room: less in use is of use for the host */
	assert_non_null(strstr(advice(&oom), "; or less, for example libggml-cuda.so+0x1a2b holds"));
	oom.holders = 0;
	assert_string_equal(
	    advice(&oom), "host.limit = 5GiB at least (it is 4.00 GiB; more if the program goes on to ask)");
}

/* Of a long name the end stands there, from a whole character on. */
TEST(names_that_are_cut)
{
	static const struct {
		const char *begin; /* before 70 letters */
		const char *shown;
	} cases[] = {{"ab", "ab"}, {"cab", "…ab"}, {"é", "é"}, {"aé", "…é"}, {"éa", "…a"}, {"模b", "…b"}};
	char rest[71] = "", name[128], expected[128];
	memset(rest, 'x', 70);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		snprintf(name, sizeof(name), "%s%s", cases[i].begin, rest);
		snprintf(expected, sizeof(expected), "%s%s", cases[i].shown, rest);
		assert_string_equal(spill_block_name(name).text, expected);
	}
	assert_string_equal(spill_block_name("").text, "?");
	assert_string_equal(spill_block_name(NULL).text, "?");
}
