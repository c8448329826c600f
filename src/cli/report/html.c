#include "report_html.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "put.h"
#include "cli.h"

static bool failed(const char *path)
{
	cli_fprintf(stderr, "spill report: %s: %s\n", path, strerror(errno));
	return false;
}

/* Closes it in any case. */
static bool write_page(FILE *file, const struct cli_report *report, const struct cli_stories *stories)
{
	bool good;

	cli_report_page(file, report, stories);
	good = !fflush(file) && !ferror(file);
	return !fclose(file) && good;
}

/* What is no regular file, a pipe for instance, keeps its name. */
static bool write_into(const char *path, const struct cli_report *report, const struct cli_stories *stories)
{
	FILE *file = fopen(path, "we");

	return (file && write_page(file, report, stories)) || failed(path);
}

/* As any new file: what the umask leaves. Only a single thread may ask for it so. */
static mode_t mode_of_new(void)
{
	mode_t mask = umask(0);

	umask(mask);
	return 0666 & ~mask;
}

static bool replace(const char *path, mode_t mode, const struct cli_report *report,
                    const struct cli_stories *stories)
{
	size_t size = strlen(path) + sizeof(".XXXXXX");
	char *beside = cli_realloc(NULL, size, 1);
	bool good;
	int fd;

	snprintf(beside, size, "%s.XXXXXX", path);
	fd = mkostemp(beside, O_CLOEXEC);
	if (fd < 0) {
		free(beside);
		return failed(path);
	}
	good = !fchmod(fd, mode);
	good = write_page(fdopen(fd, "w"), report, stories) && good && !rename(beside, path);
	if (!good) {
		failed(path);
		unlink(beside);
	}
	free(beside);
	return good;
}

static bool write_file(const char *path, const struct cli_report *report, const struct cli_stories *stories)
{
	struct stat status;
	char *target;
	bool good;

	if (stat(path, &status))
		return replace(path, mode_of_new(), report, stories);
	if (!S_ISREG(status.st_mode))
		return write_into(path, report, stories);
	/* A link stays one: its target is replaced. */
	target = realpath(path, NULL);
	good = target ? replace(target, status.st_mode & 0777, report, stories) : failed(path);
	free(target);
	return good;
}

static void tell(const char *path, size_t runs)
{
	struct stat status;

	if (stat(path, &status) || !S_ISREG(status.st_mode))
		return;
	cli_put(stdout, path);
	cli_printf(": %zu %s, ", runs, runs == 1 ? "run" : "runs");
	cli_put_size(stdout, (uint64_t)status.st_size);
	puts("; open it in a browser");
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
	tell(path, report->summaries.count);
	return true;
}
