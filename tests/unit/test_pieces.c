/* The logs of a folder in reading order: a run's pieces follow each other, and what is no log is left out. */
#define SETUP setup
#define TEARDOWN teardown
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lines.h"

static char folder[64];
static const char *made[16];
static unsigned count;

static int setup(void **state)
{
	strcpy(folder, "/tmp/spill-unit-XXXXXX");
	count = 0;
	return mkdtemp(folder) ? 0 : -1;
}

static int teardown(void **state)
{
	char path[128];

	while (count--) {
		snprintf(path, sizeof(path), "%s/%s", folder, made[count]);
		unlink(path);
	}
	return rmdir(folder);
}

/* time: of the start line; NULL: there is none. */
static void put(const char *name, const char *time, unsigned continues)
{
	char path[128];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	file = fopen(path, "w");
	assert_non_null(file);
	made[count++] = name;
	if (time && *time)
		fprintf(file,
		        "{\"v\":1,\"kind\":\"start\",\"t\":0.0,\"time\":\"%s\",\"pid\":1,\"continues\":%u}\n",
		        time, continues);
	else if (time)
		fputs("{\"v\":1,\"kind\":\"start\",\"t\":0.0,\"pid\":1}\n", file);
	fclose(file);
}

/* All that are found, in this order. The list ends with NULL. */
static void are_found(const char *const *names)
{
	struct cli_pieces pieces = cli_pieces_find(folder);
	size_t at = 0;

	for (; names[at]; at++) {
		char path[128];

		assert_true(at < pieces.count);
		snprintf(path, sizeof(path), "%s/%s", folder, names[at]);
		assert_string_equal(pieces.paths[at], path);
	}
	assert_int_equal(pieces.count, at);
	assert_null(cli_pieces_problem(&pieces));
	cli_pieces_free(&pieces);
	assert_int_equal(pieces.count, 0);
}

TEST(names_of_logs)
{
	static const char *const others[] = {"a.json",   "a.jsonl.gz", ".jsonl",   "a.jsonlx", "a.jsonl.",
	                                     "a.jsonl-", "a.jsonl.1x", "a.jsonl1", "jsonl"};
	struct cli_pieces pieces = cli_pieces_find(folder);

	assert_string_equal(cli_pieces_problem(&pieces), "no *.jsonl in it");
	cli_pieces_free(&pieces);
	for (unsigned i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		put(others[i], NULL, 0);
	pieces = cli_pieces_find(folder);
	assert_int_equal(pieces.error, 0);
	assert_string_equal(cli_pieces_problem(&pieces), "no *.jsonl in it");
	cli_pieces_free(&pieces);
	put("a.jsonl", NULL, 0);
	put("b.jsonl.1", NULL, 0);
	put("c.jsonl-20261121", NULL, 0);
	put("d.jsonl_2.3-4", NULL, 0);
	are_found((const char *const[]){"a.jsonl", "b.jsonl.1", "c.jsonl-20261121", "d.jsonl_2.3-4", NULL});
	pieces = cli_pieces_find("/nowhere");
	assert_string_equal(cli_pieces_problem(&pieces), "No such file or directory");
	cli_pieces_free(&pieces);
}

TEST(compressed_logs_are_counted_and_not_found)
{
	static const char *const compressed[] = {"b.jsonl.gz", "a.jsonl-20261121.zst", "a.jsonl.1.xz",
	                                         "c.jsonl.bz2", "c.jsonl.lz4"};
	struct cli_pieces pieces;

	put("d.gz", NULL, 0);
	put(".gz", NULL, 0);
	put(".jsonl.gz", NULL, 0);
	put("d.jsonl.tar.gz", NULL, 0);
	pieces = cli_pieces_find(folder);
	assert_int_equal(pieces.compressed, 0);
	assert_null(pieces.one_of_them);
	cli_pieces_free(&pieces);
	for (size_t i = 0; i < sizeof(compressed) / sizeof(compressed[0]); i++)
		put(compressed[i], NULL, 0);
	put("e.jsonl", NULL, 0);
	pieces = cli_pieces_find(folder);
	assert_int_equal(pieces.compressed, 5);
	assert_string_equal(pieces.one_of_them, "a.jsonl-20261121.zst");
	cli_pieces_free(&pieces);
	are_found((const char *const[]){"e.jsonl", NULL});
}

/* Numbers in names are numbers. When these began does not matter. */
TEST(logs_of_several_names)
{
	put("y10.jsonl", "1", 0);
	put("y9.jsonl", "2", 0);
	put("x.jsonl", "3", 0);
	are_found((const char *const[]){"x.jsonl", "y9.jsonl", "y10.jsonl", NULL});
}

/* By time, then by the lines before them, then by name. */
TEST(pieces_of_one_name)
{
	put("a.jsonl", "2", 9);
	put("a.jsonl.1", "2", 0);
	put("a.jsonl.2", "1", 20);
	put("a.jsonl.3", "2", 5);
	put("a.jsonl.9", "3", 0);
	put("a.jsonl.10", "3", 0);
	put("a.jsonl.4", "", 0);
	put("a.jsonl.11", NULL, 0);
	put("b.jsonl", "0", 0);
	are_found((const char *const[]){"a.jsonl.4", "a.jsonl.11", "a.jsonl.2", "a.jsonl.1", "a.jsonl.3",
	                                "a.jsonl", "a.jsonl.9", "a.jsonl.10", "b.jsonl", NULL});
}

/* Processes that had one name at once: the second has a number behind it, if the first is there. */
TEST(several_processes_of_one_name)
{
	put("a.jsonl", "2", 7);
	put("a-2.jsonl", "1", 0);
	put("a-13.jsonl", "3", 0);
	put("a-.jsonl", "0", 0);
	put("a2.jsonl", "0", 0);
	put("a-x.jsonl", "0", 0);
	put("b-3.jsonl", "2", 0);
	put("b-2.jsonl", "3", 0);
	are_found((const char *const[]){"a-2.jsonl", "a.jsonl", "a-13.jsonl", "a-.jsonl", "a-x.jsonl",
	                                "a2.jsonl", "b-2.jsonl", "b-3.jsonl", NULL});
}
