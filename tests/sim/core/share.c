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

#include "share.h"

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
	memcpy(table->name.magic, MAGIC, sizeof(table->name.magic));
	table->pid = (uint32_t)getpid();
	table->place = file->place;
	table->which = file->place == SIM_ON_DEVICE ? sim_config()->which[file->id] : 0;
	if (getrandom(&table->name.file, sizeof(table->name.file), 0) != sizeof(table->name.file))
		table->name.file = sim_next_id() << 32 | table->pid;
	file->table = table;
	return true;
}

bool share_is_file(int descriptor, const struct table *table)
{
	const off_t behind = (off_t)share_table_bytes();
	struct file_name other;
	struct stat about;

	return !fstat(descriptor, &about) && about.st_size > behind &&
	       pread(descriptor, &other, sizeof(other), about.st_size - behind) == sizeof(other) &&
	       !memcmp(other.magic, MAGIC, sizeof(other.magic)) && (!table || other.file == table->name.file);
}

/* A new row, or the one that the same thing has. */
static struct row *row_for(struct file *file, const struct row *wanted)
{
	struct row *found = NULL;

	if (!file->table || !share_is_file(file->descriptor, file->table)) {
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

int share_open_again(uint32_t pid, int descriptor)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%u/fd/%d", pid, descriptor);
	return open(path, O_RDWR | O_CLOEXEC);
}

int share_open_row(uint32_t pid, int descriptor, const struct table *table, const struct row *row,
                   unsigned slot)
{
	struct flock lock = lock_of(F_RDLCK, row->offset, row->bytes ? row->bytes : 1);
	const uint64_t id = atomic_load(&row->id);
	int opened = id ? share_open_again(pid, descriptor) : -1;

	if (opened >= 0 &&
	    (!share_is_file(opened, table) || (row->bytes && fcntl(opened, F_OFD_SETLK, &lock)) ||
	     atomic_load(&row->id) != id || lseek(opened, slot, SEEK_SET) < 0)) {
		close(opened);
		return -1;
	}
	return opened;
}

/* -- exports ----------------------------------------------------------------------------------- */

uint64_t share_offset(const struct file *file, const struct sim_physical *physical)
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
	filled.offset = share_offset(file, range->physical);
	filled.bytes = range->physical->bytes;
	filled.start = wanted->start - range->address;
	const struct row *row = row_for(file, &filled);
	if (!row)
		return SIM_NO_HOST_MEMORY;
	range->physical->exported = true;
	*out = (struct sim_ticket){.magic = MAGIC,
	                           .file = file->table->name.file,
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
	    row ? share_open_row((uint32_t)getpid(), file->descriptor, file->table, row, slot_of(file, row))
	        : -1;

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
		                     .offset = share_offset(file, physical),
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
