/*
 * Memory that several processes have (core.h). A file's table is behind its memory, and the importer
 * reads it, too. The order that both sides keep:
 *
 * - The owner of memory that ends clears its row first. Then it looks whether anybody holds the part.
 * - An importer locks the part first. Then it looks whether the row is still there.
 *
 * Locks are those of an open file description (fcntl, F_OFD_SETLK). One stays until the last
 * descriptor and the last mapping of its description have gone. So each import opens the file anew.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core_internal.h"

#define ROWS 1024
#define MAGIC "spill-simulator"

enum kind { ROW_PLAIN = 1, ROW_PHYSICAL, ROW_POOL, ROW_BLOCK };

struct row {
	_Atomic uint64_t id; /* 0: free */
	uint32_t kind;
	uint64_t offset, bytes; /* the part of the file */
	uint64_t start, asked;  /* PLAIN, BLOCK: the allocation in it */
	uint64_t of;            /* PLAIN, BLOCK: the allocation's id in its process */
	uint64_t pool;          /* BLOCK: the row of its pool */
	_Alignas(16) char face[SIM_FACE];
};

struct table {
	char magic[16];
	uint64_t file; /* a random name */
	uint32_t pid;
	enum sim_place place;
	int32_t which; /* the installed device */
	struct row rows[ROWS];
};

struct import {
	int descriptor; /* -1: none is needed */
	uint64_t offset;
};

struct lent {
	struct lent *next;
	struct part part;
};

static struct lent *lent;
static atomic_bool exported; /* anything */

/* -- tables ------------------------------------------------------------------------------------ */

uint64_t share_table_bytes(void)
{
	return round_up(sizeof(struct table), SIM_GRANULE);
}

bool share_table_open(struct file *file)
{
	struct table *table = mmap(NULL, sizeof(*table), PROT_READ | PROT_WRITE, MAP_SHARED, file->descriptor,
	                           (off_t)file->bytes);

	if (table == MAP_FAILED)
		return false;
	memcpy(table->magic, MAGIC, sizeof(table->magic));
	table->pid = (uint32_t)getpid();
	table->place = file->place;
	table->which = file->place == SIM_ON_DEVICE ? sim_config()->which[file->id] : 0;
	if (getrandom(&table->file, sizeof(table->file), 0) != sizeof(table->file))
		table->file = sim_next_id() << 32 | table->pid;
	file->table = table;
	return true;
}

/* The program may have closed the descriptor, and opened another file with its number. */
static bool descriptor_is(int descriptor, const struct table *table)
{
	struct table other;
	struct stat about;
	const size_t head = offsetof(struct table, rows);

	return !fstat(descriptor, &about) && about.st_size > (off_t)share_table_bytes() &&
	       pread(descriptor, &other, head, about.st_size - (off_t)share_table_bytes()) == (ssize_t)head &&
	       !memcmp(other.magic, MAGIC, sizeof(other.magic)) && (!table || other.file == table->file);
}

/* A new row, or the one that the same thing has. */
static struct row *row_for(struct file *file, const struct row *wanted)
{
	struct row *found = NULL;

	if (!file->table || !descriptor_is(file->descriptor, file->table)) {
		sim_say("memory cannot be exported: its file has no descriptor");
		return NULL;
	}
	for (unsigned i = 0; i < ROWS; i++) {
		struct row *row = &file->table->rows[i];

		if (!atomic_load(&row->id))
			found = found ? found : row;
		else if (row->kind == wanted->kind && row->offset == wanted->offset &&
		         row->of == wanted->of && row->pool == wanted->pool)
			return row;
	}
	if (!found) {
		sim_say("memory cannot be exported: the table is full");
		return NULL;
	}
	const uint64_t id = sim_next_id();
	memcpy((char *)found + offsetof(struct row, kind), &wanted->kind,
	       sizeof(*found) - offsetof(struct row, kind));
	atomic_store(&found->id, id);
	atomic_store(&exported, true);
	return found;
}

static void clear_rows(struct file *file, bool (*fits)(const struct row *row, const void *what),
                       const void *what)
{
	for (unsigned i = 0; file->table && i < ROWS; i++) {
		struct row *row = &file->table->rows[i];

		if (atomic_load(&row->id) && fits(row, what))
			atomic_store(&row->id, 0);
	}
}

static bool is_of(const struct row *row, const void *id)
{
	return (row->kind == ROW_PLAIN || row->kind == ROW_BLOCK) && row->of == *(const uint64_t *)id;
}

void share_forget(uint64_t id)
{
	if (!atomic_load(&exported))
		return;
	for (int device = 0; device < sim_config()->devices; device++) {
		const struct sim_physical like = {.place = SIM_ON_DEVICE, .id = device};

		clear_rows(device_file_of(&like), is_of, &id);
	}
}

/* -- who holds a part -------------------------------------------------------------------------- */

static struct flock lock_of(short type, uint64_t offset, uint64_t bytes)
{
	return (struct flock){
	    .l_type = type, .l_whence = SEEK_SET, .l_start = (off_t)offset, .l_len = (off_t)bytes};
}

static uint64_t offset_of(const struct part *part)
{
	return (uint64_t)(part->home - part->file->home);
}

static bool is_held(const struct part *part)
{
	struct flock lock = lock_of(F_WRLCK, offset_of(part), part->bytes);

	return !fcntl(part->file->descriptor, F_OFD_GETLK, &lock) && lock.l_type != F_UNLCK;
}

static bool in_part(const struct row *row, const void *what)
{
	const struct part *part = what;

	return row->kind != ROW_POOL && row->offset >= offset_of(part) &&
	       row->offset < offset_of(part) + part->bytes;
}

/* Not physical memory: a descriptor of it can still be imported. */
static bool ends_with_owner(const struct row *row, const void *part)
{
	return row->kind != ROW_PHYSICAL && in_part(row, part);
}

bool share_lends(const struct part *part)
{
	clear_rows(part->file, ends_with_owner, part);
	struct lent *one = is_held(part) ? malloc(sizeof(*one)) : NULL;
	if (!one) {
		clear_rows(part->file, in_part, part);
		return false;
	}
	*one = (struct lent){lent, *part};
	lent = one;
	return true;
}

void share_settle(void)
{
	for (struct lent **link = &lent; *link;) {
		struct lent *one = *link;

		if (is_held(&one->part)) {
			link = &one->next;
			continue;
		}
		*link = one->next;
		clear_rows(one->part.file, in_part, &one->part);
		device_part_end(&one->part);
		free(one);
	}
}

/* Beyond the descriptors that programs count, if there is room. */
static int keep_away(int descriptor)
{
	int moved = fcntl(descriptor, F_DUPFD_CLOEXEC, DEVICE_DESCRIPTORS);

	if (moved < 0)
		return descriptor;
	close(descriptor);
	return moved;
}

/* A descriptor of a description of its own. -1: none. */
static int open_again(uint32_t pid, int descriptor)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%u/fd/%d", pid, descriptor);
	return open(path, O_RDWR | O_CLOEXEC);
}

/* The same with a lock on the part of a row, which stands at the descriptor's position. -1: it has ended. */
static int open_row(uint32_t pid, int descriptor, const struct table *table, const struct row *row,
                    unsigned slot)
{
	struct flock lock = lock_of(F_RDLCK, row->offset, row->bytes ? row->bytes : 1);
	const uint64_t id = atomic_load(&row->id);
	int opened = id ? open_again(pid, descriptor) : -1;

	if (opened >= 0 &&
	    (!descriptor_is(opened, table) || (row->bytes && fcntl(opened, F_OFD_SETLK, &lock)) ||
	     atomic_load(&row->id) != id || lseek(opened, slot, SEEK_SET) < 0)) {
		close(opened);
		return -1;
	}
	return opened;
}

/* -- exports ----------------------------------------------------------------------------------- */

static uint64_t place_in_file(const struct file *file, const struct sim_physical *physical)
{
	return (uint64_t)(physical->home - file->home);
}

static unsigned slot_of(const struct file *file, const struct row *row)
{
	return (unsigned)(row - file->table->rows);
}

/* The row of a pool, which has no memory of its own in the table. */
static struct row *row_of_pool(struct sim_pool *pool)
{
	struct sim_pool_about about;
	struct row wanted = {.kind = ROW_POOL, .of = (uintptr_t)pool};
	struct sim_physical like = {.place = SIM_ON_DEVICE};

	sim_pool_about(pool, &about);
	if (about.kind != SIM_DEVICE || pool_import(pool)->descriptor >= 0)
		return NULL;
	like.id = about.device;
	memcpy(wanted.face, sim_pool_face(pool), sizeof(wanted.face));
	pthread_mutex_lock(&sim_memory_lock);
	struct row *row = row_for(device_file_of(&like), &wanted);
	pthread_mutex_unlock(&sim_memory_lock);
	return row;
}

static enum sim_status export_range(struct range *range, const struct row *wanted, struct sim_ticket *out)
{
	if (!range || !range->physical || range->imported)
		return SIM_INVALID;
	struct file *file = device_file_of(range->physical);
	struct row filled = *wanted;
	filled.offset = place_in_file(file, range->physical);
	filled.bytes = range->physical->bytes;
	filled.start = wanted->start - range->address;
	const struct row *row = row_for(file, &filled);
	if (!row)
		return SIM_NO_HOST_MEMORY;
	range->physical->exported = true;
	*out = (struct sim_ticket){.magic = MAGIC,
	                           .file = file->table->file,
	                           .row = atomic_load(&row->id),
	                           .pid = file->table->pid,
	                           .descriptor = (uint32_t)file->descriptor,
	                           .slot = slot_of(file, row),
	                           .kind = row->kind};
	return SIM_OK;
}

enum sim_status sim_export(uint64_t address, struct sim_ticket *out)
{
	struct sim_pointer about;

	if (!sim_pointer(address, &about) || about.kind != SIM_DEVICE)
		return SIM_INVALID;
	struct row wanted = {.kind = about.pool ? ROW_BLOCK : ROW_PLAIN,
	                     .start = about.base,
	                     .asked = about.size,
	                     .of = about.id};
	if (about.pool) {
		const struct row *pool = row_of_pool(about.pool);

		if (!pool)
			return SIM_INVALID;
		wanted.pool = atomic_load(&pool->id);
	}
	pthread_mutex_lock(&sim_memory_lock);
	enum sim_status status = export_range(va_range(address), &wanted, out);
	pthread_mutex_unlock(&sim_memory_lock);
	return status;
}

/* A descriptor that holds the row's part, as one that is sent to another process does. */
static enum sim_status hand_out(const struct file *file, const struct row *row, int *descriptor)
{
	int made =
	    row ? open_row((uint32_t)getpid(), file->descriptor, file->table, row, slot_of(file, row)) : -1;

	if (made < 0)
		return SIM_NO_HOST_MEMORY;
	*descriptor = made;
	return SIM_OK;
}

enum sim_status sim_physical_export(struct sim_physical *physical, int *descriptor)
{
	pthread_mutex_lock(&sim_memory_lock);
	enum sim_status status = SIM_INVALID;
	if (sim_physical_alive(physical) && physical->references && !physical->import) {
		struct file *file = device_file_of(physical);
		struct row wanted = {.kind = ROW_PHYSICAL,
		                     .offset = place_in_file(file, physical),
		                     .bytes = physical->bytes,
		                     .of = (uintptr_t)physical};

		memcpy(wanted.face, physical->face, sizeof(physical->face));
		physical->exported = true;
		status = hand_out(file, row_for(file, &wanted), descriptor);
	}
	pthread_mutex_unlock(&sim_memory_lock);
	return status;
}

enum sim_status sim_pool_export(struct sim_pool *pool, int *descriptor)
{
	struct sim_pool_about about;
	struct row *row = sim_pool_alive(pool) ? row_of_pool(pool) : NULL;
	struct sim_physical like = {.place = SIM_ON_DEVICE};

	if (!row)
		return SIM_INVALID;
	sim_pool_about(pool, &about);
	like.id = about.device;
	return hand_out(device_file_of(&like), row, descriptor);
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

	if (!descriptor_is(descriptor, NULL) || fstat(descriptor, &about))
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
	int opened = physical ? open_row(pid, descriptor, view->table, row, slot) : -1;
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
	if (file->table && file->table->file == view->table->file && sim_physical_alive(own) &&
	    own->references && place_in_file(file, own) == row->offset) {
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
	bool good = row && view.table->file == ticket->file && atomic_load(&row->id) == ticket->row;
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
		int descriptor = open_again(ticket->pid, (int)ticket->descriptor);

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
	int own = status ? -1 : open_again((uint32_t)getpid(), descriptor);
	if (!status && own < 0)
		status = SIM_NO_HOST_MEMORY;
	if (!status)
		status = sim_pool_create(SIM_DEVICE, device, 0, &pool);
	if (!status) {
		memcpy(sim_pool_face(pool), row->face, sizeof(row->face));
		pool_set_import(
		    pool, (struct pool_import){keep_away(own), view.table->file, atomic_load(&row->id)});
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
