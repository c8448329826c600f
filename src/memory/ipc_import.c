/*
 * The importer's side of ipc.h: mappings of other processes' memory. They are not in the ledger,
 * because this process has not asked for the memory. They never move.
 */
#include "ipc.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lock.h"
#include "peer.h"

/* The exporter is of the same user. These only keep a damaged answer from asking for the moon. */
#define MOST_PARTS (1u << 22)
#define MOST_BYTES (1ull << 46)

struct part {
	uint64_t handle, bytes;
};

struct spill_ipc_import {
	LIST_ENTRY(spill_ipc_import) link;
	struct spill_ipc_handle handle;
	struct spill_ipc_range range;
	uint64_t mapped; /* bytes, from range.ptr. */
	uint64_t reserved;
	uint64_t generation; /* of the context (context_end.h). */
	unsigned uses;
	uint64_t count;
	struct part *parts; /* handles only until they are mapped. */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* SPILL_RANK_IPC_IMPORT */
LIST_HEAD(import_list, spill_ipc_import);
static struct import_list list = LIST_HEAD_INITIALIZER(list);
static _Atomic unsigned open_count;
static uint64_t last_number;

/* -- getting the memory ------------------------------------------------------------------------ */

static void release_handles(struct spill_ipc_import *import)
{
	for (uint64_t i = 0; i < import->count; i++)
		import->range.backend->physical->release(import->parts[i].handle);
	import->count = 0;
}

/* One chunk's handle. *count: of all chunks. */
static bool fetch(struct spill_ipc_import *import, int connection, uint64_t index, uint64_t *count)
{
	const struct spill_ipc_question question = {import->handle.number, index};
	struct spill_ipc_answer answer;
	struct part part;
	int descriptor;
	if (!spill_fd_pass_send(connection, &question, sizeof(question), -1) ||
	    !spill_fd_pass_receive(connection, &answer, sizeof(answer), &descriptor))
		return false;
	part.bytes = answer.bytes;
	bool good = descriptor >= 0 && answer.count && answer.count <= MOST_PARTS && answer.bytes &&
	            answer.bytes <= MOST_BYTES - import->reserved;
	if (good && !import->parts)
		import->parts = malloc(answer.count * sizeof(part));
	good = good && import->parts && (!index || answer.count == *count) &&
	       !import->range.backend->physical->from_descriptor(descriptor, &part.handle);
	if (descriptor >= 0)
		close(descriptor);
	if (!good)
		return false;
	*count = answer.count;
	import->parts[import->count++] = part;
	import->reserved += part.bytes;
	return true;
}

/* The connection is not kept, because the exporter serves one at a time. */
static bool fetch_all(struct spill_ipc_import *import)
{
	int connection = spill_fd_pass_connect(import->handle.name);
	uint64_t count = 1;
	bool good = connection >= 0;
	for (uint64_t i = 0; good && i < count; i++)
		good = fetch(import, connection, i, &count);
	if (connection >= 0) {
		/* A child of a fork meanwhile holds it open, and the exporter would wait for that one. */
		shutdown(connection, SHUT_RDWR);
		close(connection);
	}
	return good && import->range.bytes && import->range.bytes <= import->reserved;
}

/* Devices with peer access to the memory of that device reach this, too, where they can. */
static void allow_peers(const struct spill_ipc_range *range, uint64_t mapped)
{
	int peers[SPILL_DEVICES];
	unsigned count = spill_peer_devices(range->backend, range->device, peers);
	for (unsigned i = 0; i < count; i++)
		range->backend->vmm->allow(range->ptr, mapped, peers[i]);
}

static int allow_all(const struct spill_ipc_import *import)
{
	const struct spill_ipc_range *range = &import->range;
	allow_peers(range, import->reserved);
	return range->backend->vmm->allow(range->ptr, import->reserved, range->device);
}

static int map_parts(struct spill_ipc_import *import)
{
	const struct spill_vendor_vmm *vmm = import->range.backend->vmm;
	uint64_t unit = spill_chunked_granularity(import->range.backend, import->range.device);
	int result = vmm->reserve(import->reserved, unit, &import->range.ptr);
	if (result) {
		import->range.ptr = 0;
		return result;
	}
	for (uint64_t i = 0; i < import->count; i++) {
		const struct part *part = &import->parts[i];
		result = vmm->map(import->range.ptr + import->mapped, part->bytes, part->handle);
		if (result)
			return result;
		import->mapped += part->bytes;
	}
	return allow_all(import);
}

/* -- the list ---------------------------------------------------------------------------------- */

/* pre: locked */
static void insert(struct spill_ipc_import *import)
{
	import->range.number = ++last_number;
	LIST_INSERT_HEAD(&list, import, link);
	atomic_fetch_add(&open_count, 1);
}

/* pre: locked */
static void take(struct spill_ipc_import *import)
{
	LIST_REMOVE(import, link);
	atomic_fetch_sub(&open_count, 1);
}

/*
 * "If the memory handle has already been opened by the current context, the reference count on the
 * handle is incremented" (CUDA Driver API, cuIpcOpenMemHandle).
 */
static bool use_again(const struct spill_ipc_import *wanted, uint64_t *ptr)
{
	struct spill_ipc_import *import;
	pthread_mutex_lock(&lock);
	LIST_FOREACH(import, &list, link)
	if (!memcmp(&import->handle, &wanted->handle, sizeof(wanted->handle)) &&
	    import->range.context == wanted->range.context) {
		import->uses++;
		*ptr = import->range.ptr;
		break;
	}
	pthread_mutex_unlock(&lock);
	return import;
}

void spill_ipc_unmap(struct spill_ipc_import *import)
{
	const struct spill_vendor_vmm *vmm = import->range.backend->vmm;
	uint64_t at = import->range.ptr, end = at + import->mapped;
	release_handles(import);
	for (const struct part *part = import->parts; at < end; at += part++->bytes)
		vmm->unmap(at, part->bytes);
	if (import->range.ptr)
		vmm->unreserve(import->range.ptr, import->reserved);
	free(import->parts);
	free(import);
}

int spill_ipc_open(const struct spill_backend *backend, int device, void *context, const void *handle,
                   uint64_t *ptr)
{
	struct spill_ipc_import *import = calloc(1, sizeof(*import));
	if (!import)
		return backend->out_of_memory;
	*import = (struct spill_ipc_import){.uses = 1, .generation = spill_context_generation()};
	memcpy(&import->handle, handle, sizeof(import->handle));
	import->range = (struct spill_ipc_range){
	    .backend = backend, .bytes = import->handle.bytes, .device = device, .context = context};
	int result = 0;
	if (use_again(import, ptr)) {
		spill_ipc_unmap(import);
		return 0;
	}
	result = fetch_all(import) ? map_parts(import) : backend->invalid_value;
	if (result) {
		spill_ipc_unmap(import);
		return result;
	}
	release_handles(import); /* the mappings keep the memory */
	*ptr = import->range.ptr;
	pthread_mutex_lock(&lock);
	insert(import);
	const struct spill_ipc_range range = import->range;
	uint64_t mapped = import->mapped;
	pthread_mutex_unlock(&lock);
	allow_peers(&range, mapped); /* a pair that was made before the import was in the list */
	return 0;
}

bool spill_ipc_close(uint64_t ptr)
{
	struct spill_ipc_import *import = NULL;
	if (!atomic_load_explicit(&open_count, memory_order_acquire))
		return false;
	pthread_mutex_lock(&lock);
	LIST_FOREACH(import, &list, link)
	if (import->range.ptr == ptr && import->uses) {
		import->uses--;
		break;
	}
	pthread_mutex_unlock(&lock);
	return import;
}

struct spill_ipc_import *spill_ipc_take_unused(struct spill_ipc_range *range)
{
	struct spill_ipc_import *import = NULL;
	if (!atomic_load_explicit(&open_count, memory_order_acquire))
		return NULL;
	pthread_mutex_lock(&lock);
	LIST_FOREACH(import, &list, link)
	if (!import->uses) {
		take(import);
		*range = import->range;
		break;
	}
	pthread_mutex_unlock(&lock);
	return import;
}

void spill_ipc_context_ended(const struct spill_context_end *end)
{
	struct spill_ipc_import *import, *next;
	struct import_list ended = LIST_HEAD_INITIALIZER(ended);
	pthread_mutex_lock(&lock);
	for (import = LIST_FIRST(&list); import; import = next) {
		next = LIST_NEXT(import, link);
		if (!spill_context_end_covers(end, import->range.backend, import->range.device,
		                              import->range.context, import->generation))
			continue;
		take(import);
		LIST_INSERT_HEAD(&ended, import, link);
	}
	pthread_mutex_unlock(&lock);
	while ((import = LIST_FIRST(&ended)) != NULL) {
		LIST_REMOVE(import, link);
		spill_ipc_unmap(import);
	}
}

bool spill_ipc_at(uint64_t ptr, struct spill_ipc_range *range)
{
	struct spill_ipc_import *import;
	if (!atomic_load_explicit(&open_count, memory_order_acquire))
		return false;
	pthread_mutex_lock(&lock);
	LIST_FOREACH(import, &list, link)
	if (ptr - import->range.ptr < import->range.bytes) {
		*range = import->range;
		break;
	}
	pthread_mutex_unlock(&lock);
	return import;
}

void spill_ipc_each(void (*visit)(const struct spill_ipc_range *range, uint64_t mapped, void *data),
                    void *data)
{
	const struct spill_ipc_import *import;
	if (!atomic_load_explicit(&open_count, memory_order_acquire))
		return;
	pthread_mutex_lock(&lock);
	LIST_FOREACH(import, &list, link)
	visit(&import->range, import->mapped, data);
	pthread_mutex_unlock(&lock);
}

/* A child of a fork has none of its parent's mappings that it could use. */
static void forget_parent(void)
{
	LIST_INIT(&list);
	atomic_store(&open_count, 0);
}

const struct spill_fork_lock spill_ipc_import_fork_lock = {&lock, forget_parent};
