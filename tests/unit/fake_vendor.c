#include "fake_vendor.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define OBJECTS 4096
#define PENDING 64
#define EVENTS 256
#define POOL_STEP (32ull << 20)
#define UNSUPPORTED 801

struct object {
	uint64_t handle, bytes; /* bytes 0: free */
	unsigned handles, mapped;
	bool on_host;
	struct fake_properties properties;
	unsigned char *data; /* once somebody looks */
};

struct mapping {
	uint64_t va, bytes; /* 0: free */
	struct object *object;
	unsigned devices; /* with access: a bit each */
};

struct list {
	struct mapping at[OBJECTS];
	unsigned used; /* from here on all have always been free */
};

static struct object objects[OBJECTS];
static unsigned objects_used;
static struct list mappings, ranges;

static struct copy {
	int device;
	uint64_t to, from, bytes;
} pending[PENDING];
static unsigned copied;

static struct event {
	bool alive, asked;
	const bool *passed; /* NULL: as the copies say */
	const void *context;
	unsigned until;
} events[EVENTS];

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t next_address, serial;

struct fake_vendor fake_vendor;

void fake_vendor_policy(struct spill_policy *policy)
{
	spill_policy_default(policy);
	policy->host_reserve = (struct spill_amount){SPILL_AMOUNT_BYTES, 0};
	policy->host_limit = (struct spill_amount){SPILL_AMOUNT_NONE, 0};
}

void fake_vendor_reset(uint64_t device_free)
{
	for (unsigned i = 0; i < objects_used; i++)
		free(objects[i].data);
	memset(objects, 0, objects_used * sizeof(objects[0]));
	memset(mappings.at, 0, mappings.used * sizeof(mappings.at[0]));
	memset(ranges.at, 0, ranges.used * sizeof(ranges.at[0]));
	memset(events, 0, sizeof(events));
	objects_used = mappings.used = ranges.used = copied = 0;
	next_address = 1ull << 40;
	fake_vendor = (struct fake_vendor){
	    .granule = 2ull << 20,
	    .host_granule = 2ull << 20,
	    .can = SPILL_CAN_SPLIT | SPILL_CAN_MANAGED | SPILL_CAN_HOST,
	    .failure = FAKE_OUT_OF_MEMORY,
	    .device_free = device_free,
	};
}

void fake_vendor_reset_mover(uint64_t device_free)
{
	fake_vendor_reset(device_free);
	fake_vendor.granule = fake_vendor.host_granule = FAKE_SMALL_UNIT;
	fake_vendor.can = SPILL_CAN_SPLIT | SPILL_CAN_MOVE;
	fake_vendor.strict = true;
}

void fake_vendor_fail(unsigned from, unsigned end)
{
	pthread_mutex_lock(&lock);
	fake_vendor.calls = 0;
	fake_vendor.fail_from = from;
	fake_vendor.fail_end = end;
	pthread_mutex_unlock(&lock);
}

unsigned fake_vendor_alive(void)
{
	return fake_vendor.handles + fake_vendor.mappings + fake_vendor.ranges + fake_vendor.hosts +
	       fake_vendor.manageds + fake_vendor.events;
}

/* -- under the lock, as all below -------------------------------------------------------------- */

static bool fails(void)
{
	unsigned call = ++fake_vendor.calls;
	return call >= fake_vendor.fail_from && call < fake_vendor.fail_end;
}

static int bad(void)
{
	fake_vendor.broken += fake_vendor.strict;
	return FAKE_INVALID;
}

static uint64_t address(uint64_t bytes)
{
	uint64_t at = next_address, unit = fake_vendor.granule;
	next_address += (bytes + unit - 1) / unit * unit + unit; /* no two touch each other */
	return at;
}

static struct mapping *at(struct list *list, uint64_t va)
{
	for (unsigned i = 0; i < list->used; i++)
		if (list->at[i].bytes && va - list->at[i].va < list->at[i].bytes)
			return &list->at[i];
	return NULL;
}

static void enter(struct list *list, const struct mapping *mapping)
{
	unsigned i = 0;
	while (i < list->used && list->at[i].bytes)
		i++;
	list->used += i == list->used;
	list->at[i] = *mapping;
}

static struct object *of(uint64_t handle)
{
	for (unsigned i = 0; i < objects_used; i++)
		if (objects[i].handles && objects[i].handle == handle)
			return &objects[i];
	return NULL;
}

static unsigned char *data_of(struct object *object)
{
	if (!object->data)
		object->data = calloc(1, object->bytes);
	return object->data;
}

/* Memory lives by its handles and its mappings. */
static void settle(struct object *object)
{
	if (object->handles || object->mapped)
		return;
	if (!object->on_host)
		fake_vendor.device_free += object->bytes;
	*(object->on_host ? &fake_vendor.host : &fake_vendor.device) -= object->bytes;
	free(object->data);
	*object = (struct object){0};
}

static unsigned char *bytes_at(uint64_t va, int device)
{
	const struct mapping *mapping = at(&mappings, va);
	return mapping && mapping->devices >> device & 1 ? data_of(mapping->object) + (va - mapping->va)
	                                                 : NULL;
}

static void run_copies(unsigned until)
{
	while (copied < until) {
		const struct copy *copy = &pending[copied++ % PENDING];
		unsigned char *to = bytes_at(copy->to, copy->device),
		              *from = bytes_at(copy->from, copy->device);
		if (to && from)
			memcpy(to, from, copy->bytes);
		else
			bad();
	}
}

/* A vendor's function. Its body runs under the lock; if `fails`, the result is `failure` instead. */
#define CALL(name, fails, failure, parameters, arguments) \
	static int name##_locked parameters; \
	static int name parameters \
	{ \
		pthread_mutex_lock(&lock); \
		int result = (fails) ? (failure) : name##_locked arguments; \
		pthread_mutex_unlock(&lock); \
		return result; \
	} \
	static int name##_locked parameters

#define TAKES(name, parameters, arguments) CALL(name, fails(), FAKE_OUT_OF_MEMORY, parameters, arguments)
#define GIVES_BACK(name, parameters, arguments) \
	CALL(name, (fake_vendor.strict || fake_vendor.release_fails) && fails(), fake_vendor.failure, \
	     parameters, arguments)
#define NEVER_FAILS(name, parameters, arguments) CALL(name, false, 0, parameters, arguments)

static void run_meanwhile(void)
{
	void (*meanwhile)(void) = __atomic_exchange_n(&fake_vendor.meanwhile, NULL, __ATOMIC_ACQ_REL);
	if (meanwhile)
		meanwhile();
}

unsigned char *fake_vendor_bytes(uint64_t va, int device)
{
	pthread_mutex_lock(&lock);
	unsigned char *bytes = bytes_at(va, device);
	pthread_mutex_unlock(&lock);
	return bytes;
}

unsigned char *fake_vendor_content(uint64_t handle)
{
	pthread_mutex_lock(&lock);
	unsigned char *bytes = data_of(of(handle));
	pthread_mutex_unlock(&lock);
	return bytes;
}

/* -- memory ------------------------------------------------------------------------------------ */

TAKES(host_alloc, (uint64_t bytes, uint64_t *ptr, void **host), (bytes, ptr, host))
{
	*ptr = address(bytes);
	*host = (void *)(uintptr_t)*ptr;
	fake_vendor.hosts++;
	return 0;
}

NEVER_FAILS(host_free, (void *host), (host))
{
	fake_vendor.hosts--;
	return 0;
}

TAKES(managed_alloc, (uint64_t bytes, uint64_t *ptr), (bytes, ptr))
{
	*ptr = address(bytes);
	fake_vendor.manageds++;
	return 0;
}

NEVER_FAILS(managed_free, (uint64_t ptr), (ptr))
{
	fake_vendor.manageds--;
	return 0;
}

static int advise(uint64_t ptr, uint64_t bytes, enum spill_location where, int device)
{
	return 0;
}

static int advise_read_mostly(uint64_t ptr, uint64_t bytes, int device)
{
	return 0;
}

TAKES(prefetch, (uint64_t ptr, uint64_t bytes, int device), (ptr, bytes, device))
{
	fake_vendor.prefetched += bytes;
	return 0;
}

/* -- physical memory, ranges and mappings ------------------------------------------------------ */

static int granularity(int device, bool on_host, uint64_t *bytes)
{
	*bytes = on_host ? fake_vendor.host_granule : fake_vendor.granule;
	return 0;
}

static void describe(const void *properties, struct spill_physical *physical)
{
	struct fake_properties asked;
	memcpy(&asked, properties, sizeof(asked));
	*physical = (struct spill_physical){.where = asked.where,
	                                    .device = asked.device,
	                                    .device_only = asked.device_only,
	                                    .exportable = asked.exportable};
	memcpy(physical->asked, properties, sizeof(physical->asked));
}

TAKES(make, (uint64_t * handle, uint64_t bytes, const struct fake_properties *properties),
      (handle, bytes, properties))
{
	bool on_host = properties->where == SPILL_LOCATION_HOST;
	unsigned i = 0;
	if (!bytes || bytes % (on_host ? fake_vendor.host_granule : fake_vendor.granule))
		return bad();
	if (!on_host && bytes > fake_vendor.device_free)
		return FAKE_OUT_OF_MEMORY;
	while (i < objects_used && objects[i].bytes)
		i++;
	objects_used += i == objects_used;
	*handle = fake_vendor.next_handle ? fake_vendor.next_handle : ++serial << 20;
	objects[i] = (struct object){*handle, bytes, 1, 0, on_host, *properties, NULL};
	fake_vendor.next_handle = 0;
	if (!on_host) {
		fake_vendor.device_free -= bytes;
		fake_vendor.made_on_device++;
	}
	*(on_host ? &fake_vendor.host : &fake_vendor.device) += bytes;
	fake_vendor.handles++;
	return 0;
}

int fake_vendor_create(uint64_t *handle, uint64_t bytes, const struct fake_properties *properties)
{
	return make(handle, bytes, properties);
}

static int create(int device, bool on_host, uint64_t bytes, uint64_t *handle)
{
	struct fake_properties properties = {on_host ? SPILL_LOCATION_HOST : SPILL_LOCATION_DEVICE, device};
	return make(handle, bytes, &properties);
}

static int create_shareable(int device, bool on_host, uint64_t bytes, uint64_t *handle)
{
	struct fake_properties properties = {.where = on_host ? SPILL_LOCATION_HOST : SPILL_LOCATION_DEVICE,
	                                     .device = device,
	                                     .exportable = true};
	return make(handle, bytes, &properties);
}

CALL(release, fake_vendor.release_fails &&fails(), fake_vendor.failure, (uint64_t handle), (handle))
{
	struct object *object = of(handle);
	if (!object) {
		fake_vendor.broken++; /* a real vendor's end */
		return FAKE_INVALID;
	}
	object->handles--;
	fake_vendor.handles--;
	settle(object);
	return 0;
}

CALL(retain, fails(), fake_vendor.failure, (uint64_t * handle, uint64_t va), (handle, va))
{
	struct mapping *mapping = at(&mappings, va);
	if (!mapping)
		return FAKE_INVALID;
	mapping->object->handles++;
	fake_vendor.handles++;
	*handle = mapping->object->handle;
	return 0;
}

int fake_vendor_retain(uint64_t *handle, uint64_t va)
{
	return retain(handle, va);
}

static bool shareable(int device, bool on_host)
{
	return !fake_vendor.no_descriptors;
}

static int retain_at(uint64_t va, uint64_t *handle)
{
	return retain(handle, va);
}

/* A descriptor is a file with the handle in it. It is good in the same process, while the handle is. */
CALL(to_descriptor, fails(), fake_vendor.failure, (uint64_t handle, int *descriptor), (handle, descriptor))
{
	int made = of(handle) && !fake_vendor.no_descriptors ? memfd_create("handle", MFD_CLOEXEC) : -1;
	if (made < 0 || write(made, &handle, sizeof(handle)) != sizeof(handle))
		return FAKE_INVALID;
	*descriptor = made;
	return 0;
}

CALL(from_descriptor, fails(), fake_vendor.failure, (int descriptor, uint64_t *handle), (descriptor, handle))
{
	uint64_t found = 0;
	struct object *object = NULL;
	if (pread(descriptor, &found, sizeof(found), 0) == sizeof(found))
		object = of(found);
	if (!object)
		return FAKE_INVALID;
	object->handles++;
	fake_vendor.handles++;
	*handle = found;
	return 0;
}

int fake_vendor_properties(struct fake_properties *properties, uint64_t handle)
{
	pthread_mutex_lock(&lock);
	const struct object *object = of(handle);
	if (object)
		*properties = object->properties;
	pthread_mutex_unlock(&lock);
	return object ? 0 : FAKE_INVALID;
}

TAKES(reserve, (uint64_t bytes, uint64_t alignment, uint64_t *va), (bytes, alignment, va))
{
	if (!bytes || bytes % fake_vendor.granule)
		return bad();
	*va = address(bytes);
	enter(&ranges, &(struct mapping){.va = *va, .bytes = bytes});
	fake_vendor.ranges++;
	return 0;
}

GIVES_BACK(unreserve, (uint64_t va, uint64_t bytes), (va, bytes))
{
	struct mapping *range = at(&ranges, va);
	if (!range || range->va != va || range->bytes != bytes)
		return bad();
	for (unsigned i = 0; i < mappings.used; i++)
		if (mappings.at[i].bytes && mappings.at[i].va - va < bytes)
			return bad();
	range->bytes = 0;
	fake_vendor.ranges--;
	return 0;
}

static bool has_a_place(uint64_t va, uint64_t bytes)
{
	const struct mapping *range = at(&ranges, va);
	return !at(&mappings, va) && !at(&mappings, va + bytes - 1) && range &&
	       range->bytes - (va - range->va) >= bytes;
}

CALL(map_now, fails(), fake_vendor.failure, (uint64_t va, uint64_t bytes, uint64_t handle),
     (va, bytes, handle))
{
	struct object *object = of(handle);
	if (!object || object->bytes != bytes || (fake_vendor.strict && !has_a_place(va, bytes)))
		return bad();
	object->mapped++;
	enter(&mappings, &(struct mapping){va, bytes, object, 0});
	fake_vendor.mappings++;
	return 0;
}

static int map(uint64_t va, uint64_t bytes, uint64_t handle)
{
	int result = map_now(va, bytes, handle);
	run_meanwhile();
	return result;
}

/* Whole mappings only; what a copy under way uses must stay. */
GIVES_BACK(unmap, (uint64_t va, uint64_t bytes), (va, bytes))
{
	const struct mapping *first = at(&mappings, va);
	unsigned under_way = fake_vendor.copies - copied;
	if (fake_vendor.strict && (!first || first->va != va || first->bytes != bytes))
		return bad();
	if (under_way > fake_vendor.most_under_way)
		fake_vendor.most_under_way = under_way;
	for (unsigned i = copied; i < fake_vendor.copies; i++)
		if (pending[i % PENDING].to - va < bytes || pending[i % PENDING].from - va < bytes)
			bad();
	for (unsigned i = 0; i < mappings.used; i++) {
		struct mapping *mapping = &mappings.at[i];
		if (!mapping->bytes || mapping->va - va >= bytes)
			continue;
		mapping->bytes = 0;
		mapping->object->mapped--;
		settle(mapping->object);
		fake_vendor.mappings--;
	}
	return 0;
}

CALL(allow, fails(), fake_vendor.failure, (uint64_t va, uint64_t bytes, int device), (va, bytes, device))
{
	for (uint64_t done = 0; done < bytes;) {
		struct mapping *mapping = at(&mappings, va + done);
		if (!mapping)
			return bad();
		mapping->devices |= 1u << device;
		done += mapping->bytes;
	}
	return 0;
}

/* -- pools: a step at a time, nothing goes back but by trimming -------------------------------- */

static uint64_t in_steps(uint64_t bytes)
{
	return (bytes + POOL_STEP - 1) / POOL_STEP * POOL_STEP;
}

CALL(make_pool, fake_vendor.no_pools || fails(), fake_vendor.no_pools ? UNSUPPORTED : FAKE_OUT_OF_MEMORY,
     (int device, enum spill_place place, enum spill_location preferred, void **pool),
     (device, place, preferred, pool))
{
	struct fake_pool *made = &fake_vendor.pool[fake_vendor.pools_made++ % FAKE_POOLS];
	*made = (struct fake_pool){.place = place};
	fake_vendor.pools++;
	*pool = made;
	return 0;
}

static int pool_create(int device, enum spill_place place, enum spill_location preferred, void **pool)
{
	int result = make_pool(device, place, preferred, pool);
	run_meanwhile();
	return result;
}

NEVER_FAILS(pool_destroy, (void *pool), (pool))
{
	fake_vendor.pools--;
	((struct fake_pool *)pool)->reserved = 0;
	return 0;
}

static int pool_allow(void *pool, int device)
{
	return 0;
}

TAKES(pool_alloc, (void *handle, uint64_t bytes, void *stream, bool per_thread, uint64_t *ptr),
      (handle, bytes, stream, per_thread, ptr))
{
	struct fake_pool *pool = handle;
	pool->used += bytes;
	if (pool->used > pool->reserved)
		pool->reserved = in_steps(pool->used);
	*ptr = address(bytes);
	return 0;
}

TAKES(look_reserved, (void *pool, uint64_t *bytes), (pool, bytes))
{
	*bytes = ((struct fake_pool *)pool)->reserved;
	return 0;
}

static int pool_reserved(void *pool, uint64_t *bytes)
{
	int result = look_reserved(pool, bytes);
	run_meanwhile();
	return result;
}

NEVER_FAILS(pool_trim, (void *handle), (handle))
{
	struct fake_pool *pool = handle;
	pool->reserved = in_steps(pool->used);
	return 0;
}

static int no_pool(int device, void **pool)
{
	return UNSUPPORTED;
}

/* -- events and copies ------------------------------------------------------------------------- */

static void *new_event(const void *context, const bool *passed)
{
	struct event *event = events;
	while (event->alive)
		event++;
	*event =
	    (struct event){.alive = true, .passed = passed, .context = context, .until = fake_vendor.copies};
	fake_vendor.events++;
	return event;
}

void *fake_vendor_event(const bool *passed)
{
	pthread_mutex_lock(&lock);
	void *event = new_event(NULL, passed);
	pthread_mutex_unlock(&lock);
	return event;
}

TAKES(event_record, (int device, void *context, void *stream, bool per_thread, void **event),
      (device, context, stream, per_thread, event))
{
	*event = new_event(context, NULL);
	return 0;
}

/* Behind all work of the context, which is copies alone. */
TAKES(mark, (int device, void *context, void **event), (device, context, event))
{
	if (context && context == fake_vendor.dead_context)
		return bad();
	fake_vendor.marks++;
	fake_vendor.marked_context = context;
	*event = new_event(context, fake_vendor.marks_pass);
	return 0;
}

/* pre: locked */
static void use_event(const struct event *event)
{
	if (!event->alive || (event->context && event->context == fake_vendor.dead_context))
		fake_vendor.broken++;
}

/* Not at the first look. */
static bool event_passed(int device, void *context, void *handle)
{
	struct event *event = handle;
	run_meanwhile();
	pthread_mutex_lock(&lock);
	use_event(event);
	bool passed = event->passed ? *event->passed : event->asked && !fake_vendor.stuck;
	fake_vendor.queries++;
	event->asked = true;
	if (passed)
		run_copies(event->until);
	pthread_mutex_unlock(&lock);
	return passed;
}

static void event_destroy(int device, void *context, void *event)
{
	pthread_mutex_lock(&lock);
	use_event(event);
	fake_vendor.events--;
	((struct event *)event)->alive = false;
	pthread_mutex_unlock(&lock);
}

TAKES(copier_create, (int device, void *context, void **stream), (device, context, stream))
{
	*stream = context;
	fake_vendor.streams++;
	return 0;
}

static void copier_destroy(int device, void *context, void *stream)
{
	pthread_mutex_lock(&lock);
	fake_vendor.streams--;
	pthread_mutex_unlock(&lock);
}

TAKES(events_ahead, (int device, void *context, unsigned count), (device, context, count))
{
	return count ? 0 : bad();
}

TAKES(copy, (int device, void *context, void *stream, uint64_t to, uint64_t from, uint64_t bytes),
      (device, context, stream, to, from, bytes))
{
	if (stream != context || !bytes_at(to, device) || !bytes_at(from, device) ||
	    bytes > at(&mappings, to)->bytes)
		return bad();
	fake_vendor.copier_context = context;
	fake_vendor.copied_bytes += bytes;
	fake_vendor.copy[fake_vendor.copies % FAKE_COPIES] =
	    (struct fake_copy){bytes, at(&mappings, from)->object->on_host};
	pending[fake_vendor.copies++ % PENDING] = (struct copy){device, to, from, bytes};
	return 0;
}

/* -- the device -------------------------------------------------------------------------------- */

/* A context that is dead runs nothing more; one whose wait has failed so often is. */
static int wait_all(int device, void *context)
{
	pthread_mutex_lock(&lock);
	int result = fake_vendor.strict && fails() ? FAKE_OUT_OF_MEMORY : fake_vendor.wait_result;
	fake_vendor.waits++;
	fake_vendor.waits_failed = result ? fake_vendor.waits_failed + 1 : 0;
	if (!result)
		run_copies(fake_vendor.copies);
	else if (fake_vendor.waits_failed == 5)
		copied = fake_vendor.copies;
	pthread_mutex_unlock(&lock);
	return result;
}

NEVER_FAILS(memory, (int device, uint64_t *free, uint64_t *total), (device, free, total))
{
	*free = fake_vendor.device_free;
	*total = fake_vendor.total ? fake_vendor.total : *free;
	return 0;
}

static bool current(int *device, void **context)
{
	*device = 0;
	*context = fake_vendor.context;
	return *context;
}

static unsigned capabilities(int device)
{
	return fake_vendor.can;
}

static bool start(spill_resolve_fn *resolve)
{
	return true;
}

static const char *error_name(int error)
{
	return error == FAKE_OUT_OF_MEMORY ? "FAKE_OUT_OF_MEMORY" : "FAKE_ERROR";
}

const struct spill_backend fake_vendor_backend = {
    .name = "fake",
    .out_of_memory = FAKE_OUT_OF_MEMORY,
    .invalid_value = FAKE_INVALID,
    .start = start,
    .error_name = error_name,
    .devices =
        &(const struct spill_vendor_devices){
            .current = current, .memory = memory, .capabilities = capabilities, .wait = wait_all},
    .memory = &(const struct spill_vendor_memory){.host_alloc = host_alloc,
                                                  .host_free = host_free,
                                                  .managed_alloc = managed_alloc,
                                                  .managed_free = managed_free,
                                                  .advise_preferred = advise,
                                                  .advise_accessed_by = advise,
                                                  .advise_read_mostly = advise_read_mostly,
                                                  .prefetch = prefetch},
    .physical = &(const struct spill_vendor_physical){.describe = describe,
                                                      .granularity = granularity,
                                                      .create = create,
                                                      .create_shareable = create_shareable,
                                                      .release = release,
                                                      .shareable = shareable,
                                                      .retain = retain_at,
                                                      .to_descriptor = to_descriptor,
                                                      .from_descriptor = from_descriptor},
    .vmm = &(const struct spill_vendor_vmm){.outlive_contexts = true,
                                            .reserve = reserve,
                                            .unreserve = unreserve,
                                            .map = map,
                                            .unmap = unmap,
                                            .allow = allow},
    .pools = &(const struct spill_vendor_pools){.create = pool_create,
                                                .destroy = pool_destroy,
                                                .allow = pool_allow,
                                                .alloc = pool_alloc,
                                                .reserved = pool_reserved,
                                                .trim = pool_trim,
                                                .current = no_pool,
                                                .device_default = no_pool},
    .events = &(const struct spill_vendor_events){.record = event_record,
                                                  .passed = event_passed,
                                                  .destroy = event_destroy},
    .moves = &(const struct spill_vendor_moves){.mark = mark,
                                                .events_ahead = events_ahead,
                                                .copier_create = copier_create,
                                                .copier_destroy = copier_destroy,
                                                .copy = copy},
};
