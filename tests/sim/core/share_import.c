/* Memory of other processes: imports. share.c has the order that both sides keep. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "share.h"

struct import {
	int descriptor; /* -1: none is needed */
	uint64_t offset;
};

/* Beyond the descriptors that programs count, if there is room. */
static int keep_away(int descriptor)
{
	int moved = fcntl(descriptor, F_DUPFD_CLOEXEC, DEVICE_DESCRIPTORS);

	if (moved < 0)
		return descriptor;
	close(descriptor);
	return moved;
}

/* -- imports ----------------------------------------------------------------------------------- */

/* A file of another process, mapped while an import looks at it. */
struct view {
	struct table *table;
	uint64_t bytes; /* of the memory before the table */
};

static bool view_open(int descriptor, struct view *view)
{
	struct stat about;

	if (!share_is_file(descriptor, NULL) || fstat(descriptor, &about))
		return false;
	view->bytes = (uint64_t)about.st_size - share_table_bytes();
	view->table = mmap(NULL, sizeof(*view->table), PROT_READ, MAP_SHARED, descriptor, (off_t)view->bytes);
	return view->table != MAP_FAILED;
}

static void view_close(const struct view *view)
{
	munmap(view->table, sizeof(*view->table));
}

static const struct row *row_at(const struct view *view, uint64_t slot, enum kind kind)
{
	const struct row *row = slot < ROWS ? &view->table->rows[slot] : NULL;

	return row && atomic_load(&row->id) && row->kind == kind ? row : NULL;
}

/* The device of this process that has the file's memory. -1: it is hidden. */
static int device_of(const struct table *table)
{
	for (int device = 0; device < sim_config()->devices; device++)
		if (sim_config()->which[device] == table->which)
			return device;
	return -1;
}

/* The part of a row as memory of this process. pre: sim_memory_lock is held */
static enum sim_status map_part(const struct view *view, const struct row *row, unsigned slot, uint32_t pid,
                                int descriptor, int device, struct sim_physical **out)
{
	struct import *import = malloc(sizeof(*import));
	struct sim_physical *physical = import ? object_new(OBJECT_PHYSICAL, sizeof(*physical)) : NULL;
	int opened = physical ? share_open_row(pid, descriptor, view->table, row, slot) : -1;
	char *home = opened < 0 ? MAP_FAILED
	                        : mmap(NULL, row->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, opened,
	                               (off_t)row->offset);

	if (home == MAP_FAILED) {
		enum sim_status status = physical && opened < 0 ? SIM_INVALID : SIM_NO_HOST_MEMORY;

		if (opened >= 0)
			close(opened);
		if (physical)
			object_delete(physical);
		free(import);
		return status;
	}
	/* A child of this process holds nothing. */
	madvise(home, row->bytes, MADV_DONTFORK);
	madvise(home, row->bytes, MADV_DONTDUMP);
	*import = (struct import){-1, row->offset};
	if (device_maps_again())
		close(opened);
	else
		import->descriptor = keep_away(opened);
	physical->place = view->table->place;
	physical->id = device;
	physical->bytes = row->bytes;
	physical->home = home;
	physical->import = import;
	physical->references = 1;
	memcpy(physical->face, row->face, sizeof(physical->face));
	*out = physical;
	return SIM_OK;
}

void share_let_go(struct sim_physical *physical)
{
	munmap(physical->home, physical->bytes);
	if (physical->import->descriptor >= 0)
		close(physical->import->descriptor);
	free(physical->import);
}

int share_descriptor(const struct import *import, uint64_t *offset)
{
	*offset = import->offset;
	return import->descriptor;
}

/* -- physical memory --------------------------------------------------------------------------- */

static enum sim_status import_physical(int descriptor, const struct view *view, unsigned slot,
                                       struct sim_physical **out)
{
	const struct row *row = row_at(view, slot, ROW_PHYSICAL);
	int device = view->table->place == SIM_ON_DEVICE ? device_of(view->table) : 0;

	if (!row)
		return SIM_INVALID;
	if (device < 0)
		return SIM_NOT_SUPPORTED;
	const struct sim_physical like = {.place = view->table->place, .id = device};
	struct sim_physical *own = (struct sim_physical *)(uintptr_t)row->of;
	const struct file *file = device_file_of(&like);
	if (file->table && file->table->name.file == view->table->name.file && sim_physical_alive(own) &&
	    own->references && share_offset(file, own) == row->offset) {
		own->references++;
		*out = own;
		return SIM_OK;
	}
	return map_part(view, row, slot, (uint32_t)getpid(), descriptor, device, out);
}

enum sim_status sim_physical_import(int descriptor, struct sim_physical **out)
{
	struct view view;
	off_t slot = lseek(descriptor, 0, SEEK_CUR);

	if (slot < 0 || !view_open(descriptor, &view))
		return SIM_INVALID;
	pthread_mutex_lock(&sim_memory_lock);
	enum sim_status status = import_physical(descriptor, &view, (unsigned)slot, out);
	pthread_mutex_unlock(&sim_memory_lock);
	view_close(&view);
	return status;
}

/* -- allocations ------------------------------------------------------------------------------- */

bool sim_ticket_is_own(const struct sim_ticket *ticket)
{
	return ticket->pid == (uint32_t)getpid();
}

/* pre for these: sim_memory_lock is held */
static struct range *find_import(uint64_t address, bool of_pool)
{
	struct range *range = va_range(address);

	return range && range->imported && !range->leaving && range->imported->start == address &&
	               (range->imported->pool != NULL) == of_pool
	           ? range
	           : NULL;
}

static struct range *find_open(const struct sim_ticket *ticket, const struct sim_context *context)
{
	for (struct range *range = sim_ranges; range; range = range->next)
		if (range->imported && !range->imported->pool && range->context == context &&
		    range->imported->file == ticket->file && range->imported->row == ticket->row)
			return range;
	return NULL;
}

/* An allocation of another process becomes one of the context's. */
static enum sim_status map_allocation(const struct view *view, const struct row *row, unsigned slot,
                                      uint32_t pid, int descriptor, const struct imported *about,
                                      struct sim_context *context, struct range **out)
{
	int device = device_of(view->table);
	struct imported *imported = malloc(sizeof(*imported));
	struct sim_physical *physical;
	struct range like = {.kind = SIM_DEVICE,
	                     .device = device < 0 ? context->device : device,
	                     .context = context,
	                     .imported = imported};

	if (!imported)
		return SIM_NO_HOST_MEMORY;
	*imported = *about;
	enum sim_status status = map_part(view, row, slot, pid, descriptor, like.device, &physical);
	if (!status)
		status = range_of(&like, row->bytes, physical, out);
	if (status) {
		free(imported);
		return status;
	}
	imported->start = (*out)->address + row->start;
	(*out)->asked = row->asked;
	return SIM_OK;
}

static enum sim_status open_ticket(const struct sim_ticket *ticket, int descriptor,
                                   struct sim_context *context, uint64_t *address)
{
	const struct imported about = {.file = ticket->file, .row = ticket->row, .opens = 1};
	struct range *range;
	struct view view;

	if (!view_open(descriptor, &view))
		return SIM_INVALID;
	const struct row *row = row_at(&view, ticket->slot, ROW_PLAIN);
	bool good = row && view.table->name.file == ticket->file && atomic_load(&row->id) == ticket->row;
	enum sim_status status = good ? map_allocation(&view, row, ticket->slot, (uint32_t)getpid(),
	                                               descriptor, &about, context, &range)
	                              : SIM_INVALID;
	if (!status)
		*address = range->imported->start;
	view_close(&view);
	return status;
}

enum sim_status sim_ticket_open(const struct sim_ticket *ticket, struct sim_context *context,
                                uint64_t *address)
{
	enum sim_status status = SIM_OK;

	if (memcmp(ticket->magic, MAGIC, sizeof(ticket->magic)) != 0 || ticket->kind != ROW_PLAIN)
		return SIM_INVALID;
	if (!sim_context_alive(context))
		return SIM_BAD_CONTEXT;
	pthread_mutex_lock(&sim_memory_lock);
	struct range *range = find_open(ticket, context);
	if (range) {
		range->imported->opens++;
		*address = range->imported->start;
	} else {
		int descriptor = share_open_again(ticket->pid, (int)ticket->descriptor);

		status = descriptor < 0 ? SIM_INVALID : open_ticket(ticket, descriptor, context, address);
		if (descriptor >= 0)
			close(descriptor);
	}
	pthread_mutex_unlock(&sim_memory_lock);
	return status;
}

/* True: it is to be unmapped, after the work of *context. */
static bool close_once(uint64_t address, struct sim_context **context, bool *known)
{
	pthread_mutex_lock(&sim_memory_lock);
	struct range *range = find_import(address, false);
	*known = range;
	bool last = range && --range->imported->opens == 0;
	if (last) {
		range->leaving = true;
		*context = range->context;
	}
	pthread_mutex_unlock(&sim_memory_lock);
	return last;
}

static void remove_import(uint64_t address)
{
	pthread_mutex_lock(&sim_memory_lock);
	struct range *range = va_range(address);
	if (range && range->imported && range->leaving)
		range_remove(range);
	pthread_mutex_unlock(&sim_memory_lock);
}

enum sim_status sim_ticket_close(uint64_t address)
{
	struct sim_context *context;
	bool known;

	if (close_once(address, &context, &known)) {
		sim_context_synchronize(context);
		remove_import(address);
	}
	return known ? SIM_OK : SIM_INVALID;
}

/* -- pools ------------------------------------------------------------------------------------- */

enum sim_status sim_pool_import(int descriptor, struct sim_pool **out)
{
	struct sim_pool *pool;
	struct view view;
	off_t slot = lseek(descriptor, 0, SEEK_CUR);

	if (slot < 0 || !view_open(descriptor, &view))
		return SIM_INVALID;
	const struct row *row = row_at(&view, (uint64_t)slot, ROW_POOL);
	int device = row ? device_of(view.table) : -1;
	enum sim_status status = !row ? SIM_INVALID : device < 0 ? SIM_NOT_SUPPORTED : SIM_OK;
	int own = status ? -1 : share_open_again((uint32_t)getpid(), descriptor);
	if (!status && own < 0)
		status = SIM_NO_HOST_MEMORY;
	if (!status)
		status = sim_pool_create(SIM_DEVICE, device, 0, &pool);
	if (!status) {
		memcpy(sim_pool_face(pool), row->face, sizeof(row->face));
		pool_set_import(
		    pool, (struct pool_import){keep_away(own), view.table->name.file, atomic_load(&row->id)});
		*out = pool;
	} else if (own >= 0) {
		close(own);
	}
	view_close(&view);
	return status;
}

enum sim_status sim_pool_import_block(struct sim_pool *pool, const struct sim_ticket *ticket,
                                      struct sim_context *context, uint64_t *address)
{
	const struct imported about = {.file = ticket->file, .row = ticket->row, .pool = pool};
	struct range *range;
	struct view view;

	if (!sim_pool_alive(pool) || memcmp(ticket->magic, MAGIC, sizeof(ticket->magic)) != 0)
		return SIM_INVALID;
	const struct pool_import *import = pool_import(pool);
	if (import->descriptor < 0 || !view_open(import->descriptor, &view))
		return SIM_INVALID;
	const struct row *row = row_at(&view, ticket->slot, ROW_BLOCK);
	bool good = row && import->file == ticket->file && atomic_load(&row->id) == ticket->row &&
	            row->pool == import->row;
	pthread_mutex_lock(&sim_memory_lock);
	enum sim_status status = good ? map_allocation(&view, row, ticket->slot, (uint32_t)getpid(),
	                                               import->descriptor, &about, context, &range)
	                              : SIM_INVALID;
	if (!status)
		*address = range->imported->start;
	pthread_mutex_unlock(&sim_memory_lock);
	view_close(&view);
	return status;
}

static void remove_block(void *data)
{
	remove_import(*(uint64_t *)data);
}

enum sim_status share_free(uint64_t address, struct sim_stream *stream)
{
	struct sim_context *context = NULL;
	uint64_t *gone = stream ? malloc(sizeof(*gone)) : NULL;

	pthread_mutex_lock(&sim_memory_lock);
	struct range *range = find_import(address, true);
	if (range && (gone || !stream)) {
		range->leaving = true;
		context = range->context;
	}
	pthread_mutex_unlock(&sim_memory_lock);
	if (!context) {
		free(gone);
		return range ? SIM_NO_HOST_MEMORY : SIM_NOT_FOUND;
	}
	if (stream) {
		*gone = address;
		return stream_submit(stream, SIM_NODE_NONE, remove_block, gone, false, true);
	}
	sim_context_synchronize(context);
	remove_import(address);
	return SIM_OK;
}
