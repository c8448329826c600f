#include "movable.h"

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
 * The rows whose library is mapped, with the loader's count of loads. Both are in one word, so that
 * no lock is needed: the count in the upper half, a bit for each row in the lower half. No count is
 * 0, because the program itself counts, so 0 means: not scanned yet.
 */
static _Atomic uint64_t mapped;
_Static_assert(sizeof(unsigned) == 4, "rows are the lower half of the word");

static int count_loads(struct dl_phdr_info *info, size_t size, void *data)
{
	*(uint32_t *)data = (uint32_t)info->dlpi_adds;
	return 1;
}

static int note_row(struct dl_phdr_info *info, size_t size, void *data)
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
	uint64_t last = atomic_load(&mapped);
	if (last && last >> 32 == loads)
		return (unsigned)last;
	/* A library that is loaded meanwhile changes the count, and the next scan sees it. */
	spill_loaded_objects_visit(note_row, &rows);
	atomic_store(&mapped, (uint64_t)loads << 32 | rows);
	return rows;
}

/*
 * True if this process has a file open that the row names. A file that cannot be read counts as
 * open.
 */
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
	const char *effect = NULL;
	int cancel;
	if (!rows)
		return NULL;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	for (unsigned row = 0; row < spill_hazard_rows() && !effect; row++) {
		const struct spill_hazard *hazard = spill_hazard_row(row);
		if (rows & 1u << row && (!hazard->open[0] || has_open(hazard)))
			effect = hazard->what;
	}
	pthread_setcancelstate(cancel, NULL);
	return effect;
}

const char *spill_hazard_scan_exports(void)
{
	const char *effect = NULL;
	for (char **variable = environ; variable && *variable && !effect; variable++)
		effect = spill_hazard_exported(*variable);
	return effect;
}

void spill_hazard_scan_reset(void)
{
	atomic_store(&mapped, 0);
}
