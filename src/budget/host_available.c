#include "host_available.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/sysinfo.h>

#include "account.h"
#include "fd.h"
#include "minmax.h"
#include "policy.h"
#include "scratch.h"
#include "small_file.h"

/* No lock, because opening may block. While `known_homes` is in use, others search again. */
static _Atomic bool busy;
static struct spill_cgroup_homes known_homes; /* used by the thread that set `busy` */

/* Clears only the members that matter: memset would touch 8 KiB. */
static void clear_homes(struct spill_cgroup_homes *homes)
{
	homes->v1.path[0] = homes->v2.path[0] = homes->v1.folder[0] = homes->v2.folder[0] = '\0';
	homes->lost = false;
}

/* A fifth of the time, in hundredths of a percent. */
#define PRESSURE_LIMIT 2000

/* "20.05" is 2005. Not by strtod, because it follows the host program's locale. */
static uint64_t hundredths(const char *text)
{
	uint64_t whole = spill_small_file_number(text);
	if (whole > 100)
		return 0; /* nonsense */
	const char *point = strpbrk(text, ". \n");
	whole *= 100;
	if (!point || *point != '.')
		return whole;
	for (uint64_t unit = 10; unit && point[1] >= '0' && point[1] <= '9'; unit /= 10)
		whole += unit * (uint64_t)(*++point - '0');
	return whole;
}

/*
 * True if all tasks that were not idle waited for memory for more than a fifth of the last 10
 * seconds. `path` is a file of the kernel's pressure stall information (PSI). False if it is
 * missing. Its second line is `full avg10=0.00 avg60=0.00 avg300=0.00 total=0`.
 */
static bool is_pressed(const char *path)
{
	char text[256];
	if (!spill_small_file_read(path, text, sizeof(text)))
		return false;
	const char *full = strncmp(text, "full ", 5) == 0 ? text : strstr(text, "\nfull ");
	const char *share = full ? strstr(full, "avg10=") : NULL;
	return share && hundredths(share + strlen("avg10=")) > PRESSURE_LIMIT;
}

/*
 * Without /proc: the memory that nobody uses, not even as cache. That is less than MemAvailable.
 * SPILL_UNLIMITED for files below another root, which tell nothing of this machine.
 */
static uint64_t mem_free(const char *root)
{
	struct sysinfo info;
	if (root[0] || sysinfo(&info) != 0)
		return SPILL_UNLIMITED;
	return ((uint64_t)info.freeram + info.bufferram) * info.mem_unit;
}

/* SPILL_UNLIMITED if the kernel has no such figure, 0 if it cannot be read for the moment. */
static uint64_t mem_available(const char *root)
{
	char text[1024]; /* MemAvailable is one of the first lines */
	if (!spill_small_file_read_in(root, "/proc", "meminfo", text, sizeof(text)))
		return spill_fd_momentary(errno) ? 0 : mem_free(root);
	const char *line = strstr(text, "MemAvailable:");
	uint64_t kib = line ? spill_small_file_number(line + strlen("MemAvailable:")) : SPILL_UNLIMITED;
	return kib > UINT64_MAX / 1024 ? SPILL_UNLIMITED : kib * 1024;
}

static struct spill_host_memory less_uncounted(struct spill_host_memory memory, uint64_t uncounted)
{
	if (memory.group != SPILL_UNLIMITED)
		memory.group = spill_minus(memory.group, uncounted);
	return memory;
}

uint64_t spill_host_memory_least(struct spill_host_memory memory, uint64_t uncounted)
{
	memory = less_uncounted(memory, uncounted);
	return spill_min(memory.machine, memory.group);
}

static struct spill_host_memory memory_under(const char *root, struct spill_cgroup_homes *homes)
{
	spill_cgroup_find(root, homes);
	return (struct spill_host_memory){mem_available(root), spill_cgroup_room(root, homes)};
}

uint64_t spill_host_available_under(const char *root, struct spill_cgroup_homes *homes, uint64_t uncounted)
{
	return spill_host_memory_least(memory_under(root, homes), uncounted);
}

bool spill_host_pressed_under(const char *root, struct spill_cgroup_homes *homes)
{
	char path[SPILL_CGROUP_PATH];
	if (spill_small_file_path(root, "/proc/pressure", "memory", path, sizeof(path)) && is_pressed(path))
		return true;
	spill_cgroup_find(root, homes);
	return homes->v2.folder[0] &&
	       spill_small_file_path(root, homes->v2.folder, "memory.pressure", path, sizeof(path)) &&
	       is_pressed(path);
}

_Static_assert(sizeof(struct spill_cgroup_homes) <= SPILL_SCRATCH, "they come from spill_scratch_take");

/* `known_homes`, or empty ones while another thread uses those. NULL if there is no memory. */
static struct spill_cgroup_homes *borrow_homes(void)
{
	if (!atomic_exchange(&busy, true))
		return &known_homes;
	struct spill_cgroup_homes *own = spill_scratch_take();
	if (own)
		clear_homes(own);
	return own;
}

static void give_back_homes(struct spill_cgroup_homes *homes)
{
	if (homes == &known_homes)
		atomic_store(&busy, false);
	else
		spill_scratch_give_back(homes);
}

struct spill_host_memory spill_host_memory(void)
{
	struct spill_cgroup_homes *homes = borrow_homes();
	struct spill_host_memory memory = homes ? memory_under("", homes) : (struct spill_host_memory){0, 0};
	give_back_homes(homes);
	return less_uncounted(memory, spill_account_physical_held());
}

uint64_t spill_host_available(void)
{
	return spill_host_memory_least(spill_host_memory(), 0);
}

uint64_t spill_host_job(void)
{
	struct spill_cgroup_homes *homes = borrow_homes();
	uint64_t job = 0;
	if (homes) {
		spill_cgroup_find("", homes);
		job = spill_cgroup_job("", homes);
	}
	give_back_homes(homes);
	return job;
}

bool spill_host_pressed(void)
{
	struct spill_cgroup_homes *homes = borrow_homes();
	bool pressed = homes && spill_host_pressed_under("", homes);
	give_back_homes(homes);
	return pressed;
}

/* Set once each, by the first call that could read both. 0: not yet. */
static _Atomic uint64_t first_machine, first_group;

struct spill_host_memory spill_host_memory_at_start(void)
{
	uint64_t machine = atomic_load(&first_machine), group = atomic_load(&first_group);
	if (!machine || !group) {
		struct spill_host_memory now = spill_host_memory();
		if (!now.machine || !now.group) /* maybe only for the moment: the next call tries again */
			return now;
		atomic_compare_exchange_strong(&first_machine, &machine, now.machine);
		atomic_compare_exchange_strong(&first_group, &group, now.group);
		machine = atomic_load(&first_machine);
		group = atomic_load(&first_group);
	}
	return (struct spill_host_memory){machine, group};
}

uint64_t spill_host_available_at_start(void)
{
	return spill_host_memory_least(spill_host_memory_at_start(), 0);
}

void spill_host_available_fork_child(void)
{
	clear_homes(&known_homes);
	atomic_store(&busy, false);
}
