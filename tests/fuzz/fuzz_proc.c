/*
 * Texts of /proc and /sys, whoever writes them: the kernel, a container, a process that chose its name or its arguments. Each goes
 * through the function that reads it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "fuzz_number.h"
#include "fuzz_tree.h"
#include "glob.h"
#include "host_available.h"
#include "numa.h"
#include "policy.h"
#include "process.h"
#include "process_status.h"
#include "start_line.h"

#define MEMINFO "/proc/meminfo"
#define PRESSURE "/proc/pressure/memory"
#define HAS_MEMORY "/sys/devices/system/node/has_memory"
#define CMDLINE "/proc/self/cmdline"
#define STAT "/proc/self/stat"
#define STATUS "/proc/self/status"

static const char *const files[] = {MEMINFO, PRESSURE, HAS_MEMORY, CMDLINE, STAT, STATUS};

static struct spill_cgroup_homes no_groups;

/* Of a file that is there: what is below another root tells nothing of this machine. */
static void check_meminfo(void)
{
	const char *text = fuzz_tree_content(MEMINFO, NULL);
	uint64_t kib, told = spill_host_available_under(fuzz_tree_root(), &no_groups, 0);
	char begin[1024]; /* so much of it is read */

	snprintf(begin, sizeof(begin), "%s", text ? text : "");
	text = strstr(begin, "MemAvailable:");
	kib = text ? fuzz_number(text + strlen("MemAvailable:")) : SPILL_UNLIMITED;
	fuzz_require(told == (kib <= UINT64_MAX / 1024 ? kib * 1024 : SPILL_UNLIMITED), "as meminfo says");
}

/* Two digits behind a point, as the kernel writes them. Of other forms only an answer is wanted. */
static void check_pressure(void)
{
	const char *text = fuzz_tree_content(PRESSURE, NULL), *full;
	bool pressed = spill_host_pressed_under(fuzz_tree_root(), &no_groups);
	char begin[256], whole[4], part[3], end;

	snprintf(begin, sizeof(begin), "%s", text ? text : "");
	full = !strncmp(begin, "full ", 5) ? begin : strstr(begin, "\nfull ");
	full = full ? strstr(full, "avg10=") : NULL;
	if (!full)
		fuzz_require(!pressed, "no pressure without a figure");
	else if (sscanf(full, "avg10=%3[0-9].%2[0-9]%c", whole, part, &end) == 3 && part[1] && end == ' ')
		fuzz_require(pressed == (atoi(whole) <= 100 && atoi(whole) * 100 + atoi(part) > 2000),
		             "pressure from a fifth on");
}

/* A list such as 0-3,8. */
static bool has_node(const char *text, uint64_t node)
{
	for (uint64_t first, last; *text >= '0' && *text <= '9'; text += *text == ',') {
		first = last = fuzz_number(text);
		text += strspn(text, "0123456789");
		if (*text == '-') {
			last = fuzz_number(++text);
			text += strspn(text, "0123456789");
		}
		if (first <= node && node <= last)
			return true;
	}
	return false;
}

static void check_nodes(void)
{
	static const int nodes[] = {0, 1, 3, 8, 63, 64, 255, SPILL_NODES - 1};
	size_t length;
	const char *text = fuzz_tree_content(HAS_MEMORY, &length);

	for (size_t i = 0; i < sizeof(nodes) / sizeof(nodes[0]); i++) {
		bool right = length ? has_node(text, (uint64_t)nodes[i]) : nodes[i] == 0;

		fuzz_require(spill_numa_use(fuzz_tree_root(), nodes[i]) == right, "a node is in its range");
		fuzz_require(spill_numa_node() == (right ? nodes[i] : SPILL_NODE_NEAREST),
		             "no other node is used");
	}
}

static void check_script(const char *interpreter, const char *words, size_t length)
{
	char name[256];

	snprintf(name, sizeof(name), "%s", interpreter);
	spill_program_script(name, sizeof(name), words, length);
	fuzz_require(memchr(name, '\0', sizeof(name)) != NULL && *name && !strchr(name, '/'),
	             "a file's name");
	fuzz_require(!strcmp(name, interpreter) || memmem(words, length + 1, name, strlen(name)) != NULL,
	             "a name of the command line");
}

/* The shown part of an argument has no secret of its own: alone it would be shown whole. */
static void check_shown(struct spill_redact *redact, const char *argument)
{
	size_t length = spill_redact_shown(redact, argument);
	char *shown;

	fuzz_require(length <= strlen(argument), "no more than there is");
	shown = strndup(argument, length);
	fuzz_require(shown != NULL, "no memory");
	fuzz_require(spill_redact_shown(&(struct spill_redact){0}, shown) == length,
	             "what is shown has no secret");
	free(shown);
}

static void check_cmdline(void)
{
	static const char *const interpreters[] = {"python3.11", "perl",  "ruby", "node",
	                                           "bash",       "julia", "lua"};
	size_t length;
	const char *words = fuzz_tree_content(CMDLINE, &length);
	struct spill_redact redact = {0};

	if (!words)
		return;
	for (size_t i = 0; i < sizeof(interpreters) / sizeof(interpreters[0]); i++)
		check_script(interpreters[i], words, length);
	for (size_t at = 0; at < length; at += strlen(words + at) + 1) {
		char *argument = strdup(words + at); /* of its own size, so that a byte too many is seen */

		fuzz_require(argument != NULL, "no memory");
		check_shown(&redact, argument);
		free(argument);
	}
}

/* The content as the name of a process: it hides no field. */
static void check_name(const char *name)
{
	char stat[1024];

	snprintf(stat, sizeof(stat), "7 (%.900s) R 1 2 3", name);
	fuzz_require(!strcmp(cli_stat_field(stat, 3), "R 1 2 3") && !strcmp(cli_stat_field(stat, 6), "3") &&
	                 !cli_stat_field(stat, 7),
	             "a name hides no field");
}

static void check_stat(void)
{
	const char *text = fuzz_tree_content(STAT, NULL), *last = text;

	if (!text)
		return;
	for (unsigned field = 3; field < 60; field++) {
		const char *at = cli_stat_field(text, field);

		fuzz_require(last || !at, "no field behind a missing one");
		fuzz_require(!at || (at > last && at[-1] == ' ' && at <= text + strlen(text)),
		             "fields follow each other");
		last = at;
	}
	check_name(text);
}

static void check_status(void)
{
	const char *text = fuzz_tree_content(STATUS, NULL);
	char digits[32];
	uint64_t pid;

	if (!text)
		return;
	pid = cli_status_own_pid(text, 0);
	snprintf(digits, sizeof(digits), "%llu", (unsigned long long)pid);
	fuzz_require(!pid || pid == UINT64_MAX || strstr(text, digits) != NULL, "a number of the text");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static bool begun;

	if (!begun)
		fuzz_tree_begin(files, sizeof(files) / sizeof(files[0]));
	begun = true;
	fuzz_tree_fill(data, size);
	check_meminfo();
	check_pressure();
	check_nodes();
	check_cmdline();
	check_stat();
	check_status();
	return 0;
}
