/*
 * Any bytes as a log, for those who read it: `spill report` as text, in short, as JSON and as a page, and `spill log`. Damaged lines
 * are findings. What is printed steers no terminal and no browser, and no sum wraps around.
 */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cli.h"
#include "fuzz.h"
#include "fuzz_printed.h"
#include "report.h"

static char path[64];

static struct fuzz_printed run(fuzz_command *command, const char *name, const char *option)
{
	const char *const words[] = {name, path, option, NULL};

	return fuzz_run(command, words);
}

/* The data is one JSON value that no parser of HTML looks into. */
static void check_page(const char *log, size_t length)
{
	const char *const words[] = {"report", "--html", "-", path, NULL};
	struct fuzz_printed page = fuzz_run(cli_report, words);
	size_t before = strlen(cli_page_before), after = strlen(cli_page_after);

	if (!page.length) /* no run was read */
		return;
	fuzz_require(page.length >= before + after, "the page has its frame");
	page.text += before;
	page.length -= before + after;
	for (size_t i = 0; i < page.length; i++)
		fuzz_require(!strchr("<>&", page.text[i]), "no markup in the page's data");
	fuzz_check_json(page);
	fuzz_check_figures(page, log, length);
}

/* One of the other forms: all of them for each input would take most of the time. */
static void run_other(const char *log, size_t length)
{
	uint32_t sum = 0;

	for (size_t i = 0; i < length; i++)
		sum = sum * 31 + (unsigned char)log[i];
	switch (sum % 5) {
	case 0:
		run(cli_report, "report", NULL);
		break;
	case 1:
		run(cli_report, "report", "--summary");
		break;
	case 2:
		run(cli_log, "log", NULL);
		break;
	case 3:
		run(cli_log, "log", "--json");
		break;
	default:
		check_page(log, length);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *log = (const char *)data;
	struct fuzz_printed printed;
	int fd = memfd_create("log", MFD_CLOEXEC);

	fuzz_require(fd >= 0 && write(fd, data, size) == (ssize_t)size, "a file to read");
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	printed = run(cli_report, "report", "--json");
	fuzz_check_json(printed);
	fuzz_check_figures(printed, log, size);
	run_other(log, size);
	close(fd);
	return 0;
}
