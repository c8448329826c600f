#include "fake_chunks.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define MAPPINGS 256
#define PENDING 64

struct object {
	uint64_t bytes;
	bool on_host, released;
	unsigned mapped;
	unsigned char *data;
};

static struct mapping {
	uint64_t va, bytes; /* 0: free */
	struct object *object;
	unsigned devices; /* with access: a bit each */
} mappings[MAPPINGS], ranges[MAPPINGS];

static struct copy {
	uint64_t to, from, bytes;
} pending[PENDING];
static unsigned copied;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t next_address;

struct fake_chunks fake_chunks;

static void end(struct object *object)
{
	if (!object->released || object->mapped)
		return;
	if (!object->on_host)
		fake_chunks.device_free += object->bytes;
	free(object->data);
	free(object);
}

void fake_chunks_reset(uint64_t device_free)
{
	/* What a failure has left mapped for good. */
	for (unsigned i = 0; i < MAPPINGS; i++)
		if (mappings[i].bytes) {
			mappings[i].object->mapped--;
			end(mappings[i].object);
		}
	fake_chunks = (struct fake_chunks){.device_free = device_free};
	memset(mappings, 0, sizeof(mappings));
	memset(ranges, 0, sizeof(ranges));
	next_address = 1ull << 40;
	copied = 0;
}

void fake_chunks_fail(unsigned from, unsigned end)
{
	fake_chunks.calls = 0;
	fake_chunks.fail_from = from;
	fake_chunks.fail_end = end;
}

unsigned fake_chunks_alive(void)
{
	return fake_chunks.handles + fake_chunks.mappings + fake_chunks.ranges + fake_chunks.events;
}

/* pre: locked, as all below */
static bool fails(void)
{
	unsigned call = ++fake_chunks.calls;
	return call >= fake_chunks.fail_from && call < fake_chunks.fail_end;
}

static struct mapping *at(struct mapping *list, uint64_t va)
{
	for (unsigned i = 0; i < MAPPINGS; i++)
		if (list[i].bytes && va - list[i].va < list[i].bytes)
			return &list[i];
	return NULL;
}

static struct mapping *unused(struct mapping *list)
{
	unsigned i = 0;
	while (list[i].bytes)
		i++;
	return &list[i];
}

static int bad(void)
{
	fake_chunks.broken++;
	return 1;
}

static unsigned char *bytes_at(uint64_t va, int device)
{
	const struct mapping *mapping = at(mappings, va);
	return mapping && mapping->devices >> device & 1 ? mapping->object->data + (va - mapping->va) : NULL;
}

unsigned char *fake_chunks_bytes(uint64_t va, int device)
{
	pthread_mutex_lock(&lock);
	unsigned char *bytes = bytes_at(va, device);
	pthread_mutex_unlock(&lock);
	return bytes;
}

unsigned char *fake_chunks_content(uint64_t handle)
{
	return ((struct object *)(uintptr_t)handle)->data;
}

static void run_copies(unsigned until)
{
	while (copied < until) {
		const struct copy *copy = &pending[copied++ % PENDING];
		unsigned char *to = bytes_at(copy->to, 0), *from = bytes_at(copy->from, 0);
		if (to && from)
			memcpy(to, from, copy->bytes);
		else
			bad();
	}
}

/* The body of a vendor's function, under the lock. */
#define CALL(name, parameters, arguments) \
	static int name##_locked parameters; \
	static int name parameters \
	{ \
		pthread_mutex_lock(&lock); \
		int result = fails() ? FAKE_OUT_OF_MEMORY : name##_locked arguments; \
		pthread_mutex_unlock(&lock); \
		return result; \
	} \
	static int name##_locked parameters

CALL(reserve, (uint64_t bytes, uint64_t alignment, uint64_t *va), (bytes, alignment, va))
{
	if (!bytes || bytes % FAKE_UNIT)
		return bad();
	*va = next_address;
	next_address += bytes + FAKE_UNIT; /* no two touch each other */
	*unused(ranges) = (struct mapping){.va = *va, .bytes = bytes};
	fake_chunks.ranges++;
	return 0;
}

CALL(unreserve, (uint64_t va, uint64_t bytes), (va, bytes))
{
	struct mapping *range = at(ranges, va);
	if (!range || range->va != va || range->bytes != bytes)
		return bad();
	for (unsigned i = 0; i < MAPPINGS; i++)
		if (mappings[i].bytes && mappings[i].va - va < bytes)
			return bad();
	range->bytes = 0;
	fake_chunks.ranges--;
	return 0;
}

CALL(create, (int device, bool on_host, uint64_t bytes, uint64_t *handle), (device, on_host, bytes, handle))
{
	if (!bytes || bytes % FAKE_UNIT)
		return bad();
	if (!on_host && bytes > fake_chunks.device_free)
		return FAKE_OUT_OF_MEMORY;
	struct object *object = calloc(1, sizeof(*object));
	object->bytes = bytes;
	object->on_host = on_host;
	object->data = calloc(1, bytes);
	if (!on_host)
		fake_chunks.device_free -= bytes;
	*handle = (uintptr_t)object;
	fake_chunks.handles++;
	return 0;
}

/* Never fails: nothing of ours would know what to do then. */
static int release(uint64_t handle)
{
	pthread_mutex_lock(&lock);
	struct object *object = (struct object *)(uintptr_t)handle;
	if (object->released)
		bad();
	object->released = true;
	fake_chunks.handles--;
	end(object);
	pthread_mutex_unlock(&lock);
	return 0;
}

CALL(map, (uint64_t va, uint64_t bytes, uint64_t handle), (va, bytes, handle))
{
	struct object *object = (struct object *)(uintptr_t)handle;
	struct mapping *range = at(ranges, va);
	if (object->released || object->bytes != bytes || at(mappings, va) || at(mappings, va + bytes - 1) ||
	    !range || range->bytes - (va - range->va) < bytes)
		return bad();
	object->mapped++;
	*unused(mappings) = (struct mapping){va, bytes, object, 0};
	fake_chunks.mappings++;
	return 0;
}

/* Whole mappings only; what a copy under way uses must stay. */
CALL(unmap, (uint64_t va, uint64_t bytes), (va, bytes))
{
	struct mapping *mapping = at(mappings, va);
	if (!mapping || mapping->va != va || mapping->bytes != bytes)
		return bad();
	unsigned under_way = fake_chunks.copies - copied;
	if (under_way > fake_chunks.most_under_way)
		fake_chunks.most_under_way = under_way;
	for (unsigned i = copied; i < fake_chunks.copies; i++)
		if (pending[i % PENDING].to - va < bytes || pending[i % PENDING].from - va < bytes)
			bad();
	mapping->bytes = 0;
	mapping->object->mapped--;
	end(mapping->object);
	fake_chunks.mappings--;
	return 0;
}

CALL(allow, (uint64_t va, uint64_t bytes, int device), (va, bytes, device))
{
	for (uint64_t done = 0; done < bytes;) {
		struct mapping *mapping = at(mappings, va + done);
		if (!mapping)
			return bad();
		mapping->devices |= 1u << device;
		done += mapping->bytes;
	}
	return 0;
}

CALL(copier_create, (int device, void *context, void **stream), (device, context, stream))
{
	*stream = context;
	fake_chunks.streams++;
	return 0;
}

CALL(events_ahead, (int device, void *context, unsigned count), (device, context, count))
{
	return count ? 0 : bad();
}

static void copier_destroy(int device, void *context, void *stream)
{
	pthread_mutex_lock(&lock);
	fake_chunks.streams--;
	pthread_mutex_unlock(&lock);
}

CALL(copy, (int device, void *context, void *stream, uint64_t to, uint64_t from, uint64_t bytes),
     (device, context, stream, to, from, bytes))
{
	if (stream != context || !bytes_at(to, 0) || !bytes_at(from, 0) || bytes > at(mappings, to)->bytes)
		return bad();
	fake_chunks.copier_context = context;
	pending[fake_chunks.copies++ % PENDING] = (struct copy){to, from, bytes};
	return 0;
}

struct event {
	unsigned until;
	bool asked;
};

CALL(event_record, (int device, void *context, void *stream, bool per_thread, void **event),
     (device, context, stream, per_thread, event))
{
	struct event *made = calloc(1, sizeof(*made));
	made->until = fake_chunks.copies;
	*event = made;
	fake_chunks.events++;
	return 0;
}

/* Behind all work of the context, which is copies alone. */
static int mark(int device, void *context, void **event)
{
	return event_record(device, context, NULL, false, event);
}

/* Not at the first look. */
static bool event_passed(int device, void *context, void *handle)
{
	struct event *event = handle;
	pthread_mutex_lock(&lock);
	bool passed = event->asked && !fake_chunks.stuck;
	event->asked = true;
	if (passed)
		run_copies(event->until);
	pthread_mutex_unlock(&lock);
	return passed;
}

static void event_destroy(int device, void *context, void *event)
{
	pthread_mutex_lock(&lock);
	fake_chunks.events--;
	pthread_mutex_unlock(&lock);
	free(event);
}

/* A context that is dead runs nothing more; one whose wait has failed so often is. */
static int wait_all(int device, void *context)
{
	pthread_mutex_lock(&lock);
	int result = fails() ? FAKE_OUT_OF_MEMORY : fake_chunks.wait_result;
	fake_chunks.waits++;
	fake_chunks.waits_failed = result ? fake_chunks.waits_failed + 1 : 0;
	if (!result)
		run_copies(fake_chunks.copies);
	else if (fake_chunks.waits_failed == 5)
		copied = fake_chunks.copies;
	pthread_mutex_unlock(&lock);
	return result;
}

static bool current(int *device, void **context)
{
	return false;
}

static int granularity(int device, bool on_host, uint64_t *bytes)
{
	*bytes = FAKE_UNIT;
	return 0;
}

static unsigned capabilities(int device)
{
	return SPILL_CAN_SPLIT | SPILL_CAN_MOVE;
}

static const char *error_name(int error)
{
	return error == FAKE_OUT_OF_MEMORY ? "FAKE_OUT_OF_MEMORY" : "FAKE_ERROR";
}

static int memory(int device, uint64_t *free, uint64_t *total)
{
	*free = *total = fake_chunks.device_free;
	return 0;
}

const struct spill_backend fake_chunks_backend = {
    .name = "fake",
    .out_of_memory = FAKE_OUT_OF_MEMORY,
    .invalid_value = 1,
    .error_name = error_name,
    .devices =
        &(const struct spill_vendor_devices){
            .memory = memory,
            .current = current,
            .capabilities = capabilities,
            .wait = wait_all,
        },
    .physical =
        &(const struct spill_vendor_physical){
            .granularity = granularity,
            .create = create,
            .release = release,
        },
    .vmm =
        &(const struct spill_vendor_vmm){
            .reserve = reserve,
            .unreserve = unreserve,
            .map = map,
            .unmap = unmap,
            .allow = allow,
        },
    .events =
        &(const struct spill_vendor_events){
            .record = event_record,
            .passed = event_passed,
            .destroy = event_destroy,
        },
    .moves =
        &(const struct spill_vendor_moves){
            .mark = mark,
            .events_ahead = events_ahead,
            .copier_create = copier_create,
            .copier_destroy = copier_destroy,
            .copy = copy,
        },
};
