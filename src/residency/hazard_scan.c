#include "movable.h"

#include <dirent.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hazards.h"
#include "loaded_objects.h"
#include "small_file.h"

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
 * Devices that were seen open: the number in the upper half of a word, and in the lower one the rows that
 * name it. A device keeps its driver, and a program has the same few open many times. Its path costs a
 * microsecond, and each exchange looks: a PyTorch process lost 120 us by it (measured).
 */
#define SEEN 32
static _Atomic uint64_t seen_devices[SEEN];

/* The rows that count while a device of that path is open. "": those that always count. */
static unsigned rows_of_path(const char *path)
{
	unsigned rows = 0;
	for (unsigned row = 0; row < spill_hazard_rows(); row++)
		rows |= (unsigned)spill_hazard_opened(spill_hazard_row(row), path) << row;
	return rows;
}

/* The rows of the device that is open as this entry of the folder. Files of other kinds have none. */
static unsigned rows_of_file(int folder, const char *name)
{
	char path[PATH_MAX];
	struct stat file;
	unsigned at = 0;
	/* The names are numbers, but for `.` and `..`. */
	if (name[0] == '.' || fstat((int)spill_small_file_number(name), &file) || !S_ISCHR(file.st_mode))
		return 0;
	for (uint64_t seen; at < SEEN && (seen = atomic_load(&seen_devices[at])); at++)
		if (seen >> 32 == file.st_rdev)
			return (unsigned)seen;
	ssize_t length = readlinkat(folder, name, path, sizeof(path) - 1);
	if (length <= 0)
		return 0;
	path[length] = '\0';
	unsigned rows = rows_of_path(path);
	uint64_t unused = 0;
	if (at < SEEN && file.st_rdev <= UINT32_MAX)
		atomic_compare_exchange_strong(&seen_devices[at], &unused,
		                               (uint64_t)file.st_rdev << 32 | rows);
	return rows;
}

/*
 * The rows of which this process has a device open. If that cannot be read, all count as open.
 */
static unsigned open_rows(void)
{
	DIR *folder = opendir("/proc/self/fd");
	if (!folder)
		return UINT_MAX;
	unsigned rows = 0;
	for (struct dirent *entry; (entry = readdir(folder));)
		rows |= rows_of_file(dirfd(folder), entry->d_name);
	closedir(folder);
	return rows;
}

const char *spill_hazard_scan_mapped(void)
{
	unsigned rows = mapped_rows(), found = rows & rows_of_path("");
	int cancel;
	if (rows && !found) {
		pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
		found = rows & open_rows();
		pthread_setcancelstate(cancel, NULL);
	}
	return found ? spill_hazard_row((unsigned)__builtin_ctz(found))->what : NULL;
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
	for (unsigned i = 0; i < SEEN; i++)
		atomic_store(&seen_devices[i], 0);
}
