#include "host_memory.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#include "account.h"
#include "fd.h"
#include "minmax.h"
#include "policy.h"
#include "pressure.h"
#include "scratch.h"
#include "small_file.h"

/* No lock: a thread that opens a file may be held up there by others, so who comes second looks for itself. */
static _Atomic bool busy;
static struct spill_cgroup_homes homes_found; /* whose thread has set `busy` */

/* 8 KiB that need no clearing. */
static void forget(struct spill_cgroup_homes *homes)
{
	homes->v1.path[0] = homes->v2.path[0] = homes->v1.folder[0] = homes->v2.folder[0] = '\0';
	homes->lost = false;
}

/* A kernel without the figure sets no limit. A figure that cannot be read now counts as 0. */
static uint64_t mem_available(const char *root)
{
	char text[1024]; /* it is one of the first lines */
	if (!spill_small_file_read_in(root, "/proc", "meminfo", text, sizeof(text)))
		return spill_fd_momentary(errno) ? 0 : SPILL_UNLIMITED;
	const char *line = strstr(text, "MemAvailable:");
	uint64_t kib = line ? spill_small_file_number(line + strlen("MemAvailable:")) : SPILL_UNLIMITED;
	return kib > UINT64_MAX / 1024 ? SPILL_UNLIMITED : kib * 1024;
}

uint64_t spill_host_memory_available_under(const char *root, struct spill_cgroup_homes *homes,
                                           uint64_t uncounted)
{
	spill_cgroup_find(root, homes);
	uint64_t machine = mem_available(root), group = spill_cgroup_room(root, homes);
	if (group != SPILL_UNLIMITED)
		group = spill_minus(group, uncounted);
	return spill_min(machine, group);
}

bool spill_host_memory_pressed_under(const char *root, struct spill_cgroup_homes *homes)
{
	char path[SPILL_CGROUP_PATH];
	if (spill_small_file_path(root, "/proc/pressure", "memory", path, sizeof(path)) &&
	    spill_pressure_on(path))
		return true;
	spill_cgroup_find(root, homes);
	return homes->v2.folder[0] &&
	       spill_small_file_path(root, homes->v2.folder, "memory.pressure", path, sizeof(path)) &&
	       spill_pressure_on(path);
}

_Static_assert(sizeof(struct spill_cgroup_homes) <= SPILL_SCRATCH, "room for them");

/* `homes_found` for this thread alone, or others while another has them; NULL if there is no room for those. */
static struct spill_cgroup_homes *borrow(void)
{
	if (!atomic_exchange(&busy, true))
		return &homes_found;
	struct spill_cgroup_homes *own = spill_scratch_take();
	if (own)
		forget(own);
	return own;
}

static void give_back(struct spill_cgroup_homes *homes)
{
	if (homes == &homes_found)
		atomic_store(&busy, false);
	else
		spill_scratch_give_back(homes);
}

uint64_t spill_host_memory_available(void)
{
	struct spill_cgroup_homes *homes = borrow();
	uint64_t available =
	    homes ? spill_host_memory_available_under("", homes, spill_account_physical_held()) : 0;
	give_back(homes);
	return available;
}

bool spill_host_memory_pressed(void)
{
	struct spill_cgroup_homes *homes = borrow();
	bool pressed = homes && spill_host_memory_pressed_under("", homes);
	give_back(homes);
	return pressed;
}

uint64_t spill_host_memory_at_start(void)
{
	static _Atomic uint64_t first;
	uint64_t value = atomic_load(&first);
	if (!value) {
		uint64_t now = spill_host_memory_available();
		if (!now) /* or not to be read for the moment: who asks next looks again */
			return 0;
		atomic_compare_exchange_strong(&first, &value, now);
		value = atomic_load(&first);
	}
	return value;
}

void spill_host_memory_fork_child(void)
{
	forget(&homes_found);
	atomic_store(&busy, false);
}
