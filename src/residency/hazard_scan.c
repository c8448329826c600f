#include "hazard_scan.h"

#include <dirent.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#include "hazards.h"
#include "loaded_objects.h"

/*
 * The rows whose library is mapped, as of a count of loads. In one word, so that it needs no lock: the count above, a bit for
 * each row below. No count is 0 (the program itself is one), so 0 is: not looked yet.
 */
static _Atomic uint64_t known;
_Static_assert(sizeof(unsigned) == 4, "rows are the lower half of the word");

static int count_loads(struct dl_phdr_info *info, size_t size, void *data)
{
	*(uint32_t *)data = (uint32_t)info->dlpi_adds;
	return 1;
}

static int visit(struct dl_phdr_info *info, size_t size, void *data)
{
	int row = info->dlpi_name ? spill_hazard_find(info->dlpi_name) : -1;
	if (row >= 0)
		*(unsigned *)data |= 1u << row;
	return 0;
}

static unsigned mapped_rows(void)
{
	uint32_t loads = 0;
	unsigned rows = 0;
	spill_loaded_objects_visit(count_loads, &loads);
	uint64_t last = atomic_load(&known);
	if (last && last >> 32 == loads)
		return (unsigned)last;
	/* What is loaded meanwhile changes the count again, and is seen at the next look. */
	spill_loaded_objects_visit(visit, &rows);
	atomic_store(&known, (uint64_t)loads << 32 | rows);
	return rows;
}

/* Whether this process has a file open that the row waits for. What cannot be looked at is taken for open. */
static bool has_open(const struct spill_hazard *row)
{
	DIR *folder = opendir("/proc/self/fd");
	if (!folder)
		return true;
	bool found = false;
	for (struct dirent *entry; !found && (entry = readdir(folder));) {
		char path[PATH_MAX];
		ssize_t length = readlinkat(dirfd(folder), entry->d_name, path, sizeof(path) - 1);
		path[length > 0 ? length : 0] = '\0';
		found = length > 0 && spill_hazard_opened(row, path);
	}
	closedir(folder);
	return found;
}

const char *spill_hazard_scan_mapped(void)
{
	unsigned rows = mapped_rows();
	const char *what = NULL;
	int cancel;
	if (!rows)
		return NULL;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	for (unsigned row = 0; row < spill_hazard_rows() && !what; row++) {
		const struct spill_hazard *around = spill_hazard_row(row);
		if (rows & 1u << row && (!around->open[0] || has_open(around)))
			what = around->what;
	}
	pthread_setcancelstate(cancel, NULL);
	return what;
}

const char *spill_hazard_scan_exports(void)
{
	const char *what = NULL;
	for (char **variable = environ; variable && *variable && !what; variable++)
		what = spill_hazard_exported(*variable);
	return what;
}

void spill_hazard_scan_reset(void)
{
	atomic_store(&known, 0);
}
