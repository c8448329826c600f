#include "report.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "put.h"
#include "cli.h"

/* Writes the page and closes the file in any case. */
static bool write_page(FILE *file, const struct cli_report *report, const struct cli_stories *stories)
{
	bool written;

	cli_report_page(file, report, stories);
	written = !fflush(file) && !ferror(file);
	return !fclose(file) && written;
}

/* Writes into a pipe or other special file directly. */
static bool write_into(const char *path, const struct cli_report *report, const struct cli_stories *stories)
{
	FILE *file = fopen(path, "we");

	return (file && write_page(file, report, stories)) || cli_complain("report", path, strerror(errno));
}

/* The mode of a new file under the umask. Only a single-threaded program may read it this way. */
static mode_t mode_of_new(void)
{
	mode_t mask = umask(0);

	umask(mask);
	return 0666 & ~mask;
}

static bool replace_file(const char *path, mode_t mode, const struct cli_report *report,
                         const struct cli_stories *stories)
{
	size_t size = strlen(path) + sizeof(".XXXXXX");
	char *temporary = cli_realloc(NULL, size, 1);
	bool written;
	int fd;

	snprintf(temporary, size, "%s.XXXXXX", path);
	fd = mkostemp(temporary, O_CLOEXEC);
	if (fd < 0) {
		free(temporary);
		return cli_complain("report", path, strerror(errno));
	}
	written = !fchmod(fd, mode);
	written = write_page(fdopen(fd, "w"), report, stories) && written && !rename(temporary, path);
	if (!written) {
		cli_complain("report", path, strerror(errno));
		unlink(temporary);
	}
	free(temporary);
	return written;
}

static bool write_file(const char *path, const struct cli_report *report, const struct cli_stories *stories)
{
	struct stat status;
	char *target;
	bool written;

	if (stat(path, &status))
		return replace_file(path, mode_of_new(), report, stories);
	if (!S_ISREG(status.st_mode))
		return write_into(path, report, stories);
	/* A symbolic link stays: its target is replaced. */
	target = realpath(path, NULL);
	written = target ? replace_file(target, status.st_mode & 0777, report, stories)
	                 : cli_complain("report", path, strerror(errno));
	free(target);
	return written;
}

static void print_result(const char *path, size_t runs)
{
	struct stat status;

	if (stat(path, &status) || !S_ISREG(status.st_mode))
		return;
	cli_printf("%s: %zu %s, %s; open it in a browser\n", path, runs, runs == 1 ? "run" : "runs",
	           spill_size((uint64_t)status.st_size).text);
}

bool cli_report_html(const struct cli_report *report, const struct cli_stories *stories, const char *path)
{
	struct cli_report page = *report;

	if (!*cli_page_before) {
		fputs("spill report: this spill was built without the library that draws charts: install "
		      "Debian's libjs-dygraphs and build again\n",
		      stderr);
		return false;
	}
	if (!report->summaries.count) {
		cli_fprintf(stderr, "spill report: no run was read: %s is not written\n", path);
		return false;
	}
	page.rows = CLI_PAGE_ROWS / report->summaries.count;
	page.rows = page.rows < 20 ? 20 : page.rows > 200 ? 200 : page.rows;
	if (!strcmp(path, "-")) {
		cli_report_page(stdout, &page, stories);
		return true;
	}
	if (!write_file(path, &page, stories))
		return false;
	print_result(path, report->summaries.count);
	return true;
}
