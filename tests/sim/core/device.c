/*
 * Devices: their capacity and their memory. Each device, and the host, has one shared memory
 * mapping, its home. A physical allocation is a part of a home. The program and kernels see further
 * mappings of those pages.
 * A home is a file, where the machine gives one: so other processes can map parts of it (share.c). A
 * real driver has descriptors, too.
 * The home has more addresses than the device has bytes, so fragments of free memory can always be
 * used. A real device has page tables for that. Only capacity is counted.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core_internal.h"

pthread_mutex_t sim_memory_lock = PTHREAD_MUTEX_INITIALIZER;
struct sim_context *sim_contexts;

static struct file device_file[SIM_DEVICES], host_file;
static uint64_t used[SIM_DEVICES], capacities[SIM_DEVICES], host_used;

/* -- handles ----------------------------------------------------------------------------------- */

static pthread_mutex_t object_lock = PTHREAD_MUTEX_INITIALIZER;
static struct object *free_objects[OBJECT_TYPES];
static _Atomic unsigned living[OBJECT_TYPES];

void *object_new(enum object_type type, size_t size)
{
	pthread_mutex_lock(&object_lock);
	struct object *object = free_objects[type];
	if (object)
		free_objects[type] = object->next;
	pthread_mutex_unlock(&object_lock);
	if (!object)
		object = calloc(1, size);
	else
		memset(object + 1, 0, size - sizeof(*object));
	if (object) {
		atomic_store(&object->alive, type);
		atomic_fetch_add(&living[type], 1);
	}
	return object;
}

void object_delete(void *handle)
{
	struct object *object = handle;

	pthread_mutex_lock(&object_lock);
	uint32_t type = atomic_exchange(&object->alive, 0);
	if (type) {
		atomic_fetch_sub(&living[type], 1);
		object->next = free_objects[type];
		free_objects[type] = object;
	}
	pthread_mutex_unlock(&object_lock);
}

bool object_is(const void *handle, enum object_type type)
{
	const struct object *object = handle;

	return object && atomic_load(&object->alive) == type;
}

uint64_t sim_next_id(void)
{
	static atomic_ullong last;

	return atomic_fetch_add(&last, 1) + 1;
}

/* -- capacity ---------------------------------------------------------------------------------- */

/* Old size 0 of a shared mapping: the same pages again, elsewhere. */
static bool map_again(char *where, char *pages, uint64_t bytes)
{
	return mremap(pages, 0, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, where) != MAP_FAILED;
}

/* Where it cannot, each mapping needs the descriptor. */
bool device_maps_again(void)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *pages = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (pages == MAP_FAILED)
		return false;
	bool can = map_again(pages + page, pages, page);
	munmap(pages, 2 * page);
	return can;
}

/* The memory of a device is no file of the program's: its limit of files (a soft one) does not count. */
static bool set_bytes(int descriptor, uint64_t bytes)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_FSIZE, &limit) || limit.rlim_max < bytes)
		return false;
	setrlimit(RLIMIT_FSIZE, &(struct rlimit){limit.rlim_max, limit.rlim_max});
	bool good = ftruncate(descriptor, (off_t)bytes) == 0;
	setrlimit(RLIMIT_FSIZE, &limit);
	return good;
}

static bool needed; /* descriptors, for each mapping */

/* Where nothing works without it, it may be one of the low ones. */
static int make_descriptor(uint64_t bytes)
{
	int made = memfd_create("sim-home", MFD_CLOEXEC);
	int moved = made < 0 ? -1 : fcntl(made, F_DUPFD_CLOEXEC, DEVICE_DESCRIPTORS);

	if (made >= 0 && (moved >= 0 || !needed))
		close(made);
	made = moved >= 0 || !needed ? moved : made;
	if (made < 0 || set_bytes(made, bytes))
		return made;
	close(made);
	return -1;
}

static bool file_map(struct file *file, uint64_t bytes)
{
	file->descriptor = make_descriptor(bytes + share_table_bytes());
	file->bytes = bytes;
	if (needed && file->descriptor < 0)
		return false;
	file->home = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
	                  MAP_SHARED | MAP_NORESERVE | (file->descriptor < 0 ? MAP_ANONYMOUS : 0),
	                  file->descriptor, 0);
	if (file->home != MAP_FAILED && (file->descriptor < 0 || share_table_open(file)))
		return true;
	if (file->home != MAP_FAILED)
		munmap(file->home, bytes);
	if (file->descriptor >= 0)
		close(file->descriptor);
	return false;
}

static bool file_open(struct file *file, enum sim_place place, int id, uint64_t bytes)
{
	file->place = place;
	file->id = id;
	do {
		if (file_map(file, bytes)) {
			madvise(file->home, bytes, MADV_DONTDUMP);
			return space_init(&file->space, (uint64_t)file->home, bytes);
		}
		bytes /= 2;
	} while (bytes >= (uint64_t)4 << 30);
	return false;
}

static struct file *file_at(enum sim_place place, int id)
{
	return place == SIM_ON_DEVICE ? &device_file[id] : &host_file;
}

struct file *device_file_of(const struct sim_physical *physical)
{
	return file_at(physical->place, physical->id);
}

bool device_show(char *where, const struct sim_physical *physical, uint64_t offset, uint64_t bytes)
{
	char *pages = physical->home + offset;
	const struct file *file = device_file_of(physical);
	uint64_t in_file = (uint64_t)(pages - file->home);
	int descriptor = file->descriptor;

	if (!needed)
		return map_again(where, pages, bytes);
	if (physical->import) {
		descriptor = share_descriptor(physical->import, &in_file);
		in_file += offset;
	}
	return mmap(where, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, descriptor,
	            (off_t)in_file) != MAP_FAILED;
}

static const struct file *file_of(const char *pages)
{
	for (int i = 0; i < SIM_DEVICES; i++)
		if (pages >= device_file[i].home && pages < device_file[i].home + device_file[i].bytes)
			return &device_file[i];
	return &host_file;
}

/* fallocate is a cancellation point, and calls of a vendor are none. */
void device_empty(char *pages, uint64_t bytes)
{
	const struct file *file = file_of(pages);

	if (!needed)
		madvise(pages, bytes, MADV_REMOVE);
	else /* by number, as libc's function is one */
		syscall(SYS_fallocate, file->descriptor, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
		        pages - file->home, (off_t)bytes);
}

bool device_files_open(const struct sim_config *config, uint64_t host_bytes, bool small)
{
	const uint64_t least = (uint64_t)32 << 30;

	needed = !device_maps_again();
	for (int i = 0; i < config->devices; i++) {
		capacities[i] = config->vram[config->which[i]];
		used[i] = config->held < capacities[i] ? config->held : capacities[i];

		uint64_t home = capacities[i] * (small ? 2 : 16);

		if (!file_open(&device_file[i], SIM_ON_DEVICE, i,
		               home < least && !small ? least : round_up(home, SIM_GRANULE)))
			return false;
	}
	return file_open(&host_file, SIM_ON_HOST, 0, host_bytes);
}

static enum sim_status charge(int device, uint64_t bytes, bool may_free)
{
	const uint64_t capacity = capacities[device];

	if (bytes > capacity)
		return SIM_NO_MEMORY;
	if (bytes > capacity - used[device] && may_free)
		share_settle();
	if (bytes > capacity - used[device] && may_free)
		graph_memory_trim(device);
	if (bytes > capacity - used[device] && may_free)
		pools_reclaim(device);
	if (bytes > capacity - used[device])
		managed_evict(device, bytes - (capacity - used[device]));
	if (bytes > capacity - used[device])
		return SIM_NO_MEMORY;
	used[device] += bytes;
	return SIM_OK;
}

enum sim_status device_charge(int device, uint64_t bytes)
{
	return charge(device, bytes, true);
}

enum sim_status device_charge_in_fault(int device, uint64_t bytes)
{
	return charge(device, bytes, false);
}

void device_discharge(int device, uint64_t bytes)
{
	used[device] -= bytes;
}

void sim_device_memory(int device, uint64_t *free_bytes, uint64_t *total)
{
	const uint64_t reclaimable = sim_config()->reclaimable;

	pthread_mutex_lock(&sim_memory_lock);
	share_settle();
	*free_bytes = capacities[device] - used[device];
	*free_bytes -= *free_bytes < reclaimable ? *free_bytes : reclaimable;
	*total = capacities[device];
	pthread_mutex_unlock(&sim_memory_lock);
}

/* -- physical memory --------------------------------------------------------------------------- */

enum sim_status physical_new(enum sim_place place, int id, uint64_t bytes, bool counted,
                             struct sim_physical **out)
{
	struct file *file = file_at(place, id);
	struct sim_physical *physical = object_new(OBJECT_PHYSICAL, sizeof(*physical));
	enum sim_status status = physical ? SIM_OK : SIM_NO_HOST_MEMORY;
	uint64_t home;

	if (!status && place == SIM_ON_DEVICE && counted)
		status = device_charge(id, bytes);
	if (status) {
		if (physical)
			object_delete(physical);
		return status;
	}
	if (!space_take(&file->space, bytes, SIM_GRANULE, 0, &home)) {
		if (place == SIM_ON_DEVICE && counted)
			device_discharge(id, bytes);
		object_delete(physical);
		return place == SIM_ON_DEVICE ? SIM_NO_MEMORY : SIM_NO_HOST_MEMORY;
	}
	physical->place = place;
	physical->id = id;
	physical->bytes = bytes;
	physical->home = (char *)home;
	physical->uncounted = !counted;
	physical->references = 1;
	host_used += place == SIM_ON_DEVICE ? 0 : bytes;
	*out = physical;
	return SIM_OK;
}

void device_part_end(const struct part *part)
{
	struct file *file = part->file;
	bool on_device = file->place == SIM_ON_DEVICE;

	device_empty(part->home, part->bytes);
	space_give(&file->space, (uint64_t)part->home, part->bytes);
	if (on_device && !part->uncounted)
		device_discharge(file->id, part->bytes);
	host_used -= on_device ? 0 : part->bytes;
}

void physical_drop(struct sim_physical *physical)
{
	if (physical->references || physical->mappings)
		return;
	const struct part part = {device_file_of(physical), physical->home, physical->bytes,
	                          physical->uncounted};

	if (physical->import)
		share_let_go(physical);
	else if (!physical->exported || !share_lends(&part))
		device_part_end(&part);
	object_delete(physical);
}

void sim_left(struct sim_left *left)
{
	*left = (struct sim_left){
	    .contexts = living[OBJECT_CONTEXT],
	    .streams = living[OBJECT_STREAM],
	    .events = living[OBJECT_EVENT],
	    .handles = living[OBJECT_PHYSICAL],
	    .modules = living[OBJECT_MODULE],
	    .pools = living[OBJECT_POOL],
	    .arrays = living[OBJECT_ARRAY],
	};
	pthread_mutex_lock(&sim_memory_lock);
	share_settle();
	left->host = host_used;
	for (int i = 0; i < SIM_DEVICES; i++)
		left->device += used[i];
	for (const struct range *range = sim_ranges; range; range = range->next)
		left->ranges++;
	pthread_mutex_unlock(&sim_memory_lock);
}
