#include "ledger.h"

#include <pthread.h>
#include <search.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "account.h"
#include "clock.h"
#include "ledger_totals.h"
#include "scratch.h"
#include "site_sums.h"

/* All entries by address. Those with a placement are also in a tree, for interior addresses. */
#define BUCKETS 8192

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* SPILL_RANK_LEDGER */
static struct spill_allocation *buckets[BUCKETS];
static void *placed; /* tsearch(3) */
static _Atomic uint64_t placed_count;
static uint64_t not_in_tree; /* entries with a placement that have no node */
static uint64_t next_seq = 1, next_order = 1;

static struct spill_allocation **bucket(uint64_t ptr)
{
	return &buckets[(ptr >> 9) * 0x9e3779b97f4a7c15ull >> 51];
}
_Static_assert(BUCKETS == 1 << (64 - 51), "the shift above keeps 13 bits");

/* Ranges that overlap compare equal, so a range of one byte finds the allocation around it. */
static int compare_ranges(const void *left, const void *right)
{
	const struct spill_allocation *a = left, *b = right;
	if (a->ptr + a->bytes <= b->ptr)
		return -1;
	return b->ptr + b->bytes <= a->ptr ? 1 : 0;
}

/* pre: locked */
static void take_from_tree(struct spill_allocation *entry)
{
	tdelete(entry, &placed, compare_ranges);
	entry->in_tree = false;
}

/*
 * pre: locked. False if there is no memory for the tree's node.
 *
 * The vendor gives an address again as soon as it has ended a context, and that context's entries
 * are still here then. Such an entry leaves the tree: the address is the new one's.
 */
static bool link_placed(struct spill_allocation *entry)
{
	struct spill_allocation **node;
	if (!entry->placement || entry->handle)
		return true;
	while ((node = tsearch(entry, &placed, compare_ranges)) && *node != entry) {
		take_from_tree(*node);
		not_in_tree++;
	}
	entry->in_tree = node != NULL;
	atomic_fetch_add(&placed_count, entry->in_tree);
	return entry->in_tree;
}

/* pre: locked */
static void unlink_placed(struct spill_allocation *entry)
{
	if (!entry->placement || entry->handle)
		return;
	if (entry->in_tree)
		take_from_tree(entry);
	else
		not_in_tree--;
	atomic_fetch_sub(&placed_count, 1);
}

/* pre: locked. The end of another entry at that address was missed: the vendor reused it. */
static void insert_entry(struct spill_allocation *entry)
{
	struct spill_allocation **head = bucket(entry->ptr);
	entry->next = *head;
	*head = entry;
}

/* pre: locked */
static struct spill_allocation *remove_entry(struct spill_allocation **link)
{
	struct spill_allocation *entry = *link;
	*link = entry->next;
	entry->next = NULL;
	unlink_placed(entry);
	if (!entry->part) {
		if (!entry->sum)
			entry->order = next_order++;
		spill_ledger_totals_taken(entry);
	}
	return entry;
}

/* pre: locked */
static void count_added(struct spill_allocation *entry)
{
	if (entry->sum_rule)
		spill_site_sums_add(entry);
	if (!entry->sum)
		entry->order = next_order++;
	spill_ledger_totals_added(entry);
}

bool spill_ledger_add(struct spill_allocation *allocation)
{
	struct spill_allocation *entry = malloc(sizeof(*entry));
	if (!entry)
		return false;
	allocation->generation = spill_context_generation();
	if (allocation->placement)
		allocation->placement->generation = allocation->generation;
	*entry = *allocation;
	pthread_mutex_lock(&lock);
	if (!link_placed(entry)) {
		pthread_mutex_unlock(&lock);
		free(entry);
		return false;
	}
	entry->seq = next_seq++;
	insert_entry(entry);
	if (!entry->part)
		count_added(entry);
	*allocation = *entry;
	pthread_mutex_unlock(&lock);
	return true;
}

bool spill_ledger_moved(uint64_t ptr, uint64_t seq, const struct spill_bytes *held, uint64_t *order,
                        struct spill_level *level)
{
	struct spill_allocation *entry;
	pthread_mutex_lock(&lock);
	for (entry = *bucket(ptr); entry; entry = entry->next)
		if (entry->ptr == ptr && entry->seq == seq)
			break;
	if (entry) {
		spill_ledger_totals_moved(entry, held);
		*order = entry->order = next_order++;
		*level = entry->level;
	}
	pthread_mutex_unlock(&lock);
	return entry != NULL;
}

static struct spill_allocation *take_entry(uint64_t ptr, bool handle, uint64_t seq)
{
	struct spill_allocation *entry = NULL;
	pthread_mutex_lock(&lock);
	for (struct spill_allocation **link = bucket(ptr); *link && !entry;
	     link = entry ? link : &(*link)->next)
		if ((*link)->ptr == ptr && (*link)->handle == handle && (!handle || (*link)->seq == seq))
			entry = remove_entry(link);
	pthread_mutex_unlock(&lock);
	return entry;
}

struct spill_allocation *spill_ledger_take(uint64_t ptr)
{
	return take_entry(ptr, false, 0);
}

struct spill_allocation *spill_ledger_take_handle(uint64_t handle, uint64_t seq)
{
	return take_entry(handle, true, seq);
}

void spill_ledger_put_back(struct spill_allocation *allocation)
{
	pthread_mutex_lock(&lock);
	if (!link_placed(allocation)) {
		not_in_tree++; /* the program uses it, so it must still be found */
		atomic_fetch_add(&placed_count, 1);
	}
	insert_entry(allocation);
	if (!allocation->part)
		spill_ledger_totals_back(allocation);
	pthread_mutex_unlock(&lock);
}

void spill_ledger_end(struct spill_allocation *allocation)
{
	if (!allocation->part) {
		pthread_mutex_lock(&lock);
		spill_ledger_totals_freed(allocation);
		if (allocation->sum)
			spill_site_sums_end(allocation);
		pthread_mutex_unlock(&lock);
	}
	if (allocation->charged_rule)
		spill_account_rule_return(allocation->rule, allocation->charged_rule);
	free(allocation);
}

static bool ends_with(const struct spill_allocation *entry, const struct spill_context_end *end)
{
	return !entry->handle && !entry->outlives &&
	       spill_context_end_covers(end, entry->backend, entry->device, entry->context,
	                                entry->generation);
}

static struct spill_allocation *take_covered(const struct spill_context_end *end)
{
	for (size_t i = 0; i < BUCKETS; i++)
		for (struct spill_allocation **link = &buckets[i]; *link; link = &(*link)->next)
			if (ends_with(*link, end))
				return remove_entry(link);
	return NULL;
}

struct spill_allocation *spill_ledger_take_of(const struct spill_context_end *end)
{
	pthread_mutex_lock(&lock);
	struct spill_allocation *entry = take_covered(end);
	pthread_mutex_unlock(&lock);
	return entry;
}

/* pre: locked. Walks all entries, for those that are not in the tree. */
static const struct spill_allocation *find_by_walk(const struct spill_allocation *key)
{
	for (size_t i = 0; i < BUCKETS; i++)
		for (const struct spill_allocation *entry = buckets[i]; entry; entry = entry->next)
			if (entry->placement && !entry->handle && compare_ranges(key, entry) == 0)
				return entry;
	return NULL;
}

bool spill_ledger_placed(uint64_t ptr, struct spill_allocation *copy)
{
	if (!atomic_load(&placed_count))
		return false;
	struct spill_allocation key = {.ptr = ptr, .bytes = 1};
	pthread_mutex_lock(&lock);
	struct spill_allocation *const *node = tfind(&key, &placed, compare_ranges);
	const struct spill_allocation *found = node ? *node : not_in_tree ? find_by_walk(&key) : NULL;
	if (found)
		*copy = *found;
	pthread_mutex_unlock(&lock);
	return found != NULL;
}

void spill_ledger_each_placed(void (*visit)(const struct spill_placement *placement, void *data), void *data)
{
	if (!atomic_load(&placed_count))
		return;
	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < BUCKETS; i++)
		for (const struct spill_allocation *entry = buckets[i]; entry; entry = entry->next)
			if (entry->placement && !entry->handle)
				visit(entry->placement, data);
	pthread_mutex_unlock(&lock);
}

void spill_ledger_holders(struct spill_record_oom *record)
{
	pthread_mutex_lock(&lock);
	spill_holders_begin(record->device);
	for (size_t i = 0; i < BUCKETS; i++)
		for (const struct spill_allocation *entry = buckets[i]; entry; entry = entry->next)
			spill_holders_add(entry);
	spill_holders_end(record);
	record->live = spill_ledger_totals_sum()->live;
	pthread_mutex_unlock(&lock);
}

void spill_ledger_totals(struct spill_totals *copy)
{
	pthread_mutex_lock(&lock);
	*copy = *spill_ledger_totals_sum();
	pthread_mutex_unlock(&lock);
}

uint64_t spill_ledger_away_now(void)
{
	pthread_mutex_lock(&lock);
	uint64_t away = spill_ledger_totals_away();
	pthread_mutex_unlock(&lock);
	return away;
}

/* Waits a limited time: this thread may hold the lock, or its owner may never run again. */
static bool lock_soon(void)
{
	struct timespec until = spill_clock_in(100000000);
	return pthread_mutex_trylock(&lock) == 0 ||
	       pthread_mutex_clocklock(&lock, CLOCK_MONOTONIC, &until) == 0;
}

bool spill_ledger_totals_now(struct spill_totals *copy)
{
	if (!lock_soon())
		return false;
	*copy = *spill_ledger_totals_sum();
	pthread_mutex_unlock(&lock);
	return true;
}

bool spill_ledger_device_totals_now(struct spill_device_totals *copy, unsigned count)
{
	if (!lock_soon())
		return false;
	for (unsigned i = 0; i < count; i++)
		copy[i] = *spill_ledger_totals_of(i);
	pthread_mutex_unlock(&lock);
	return true;
}

void spill_ledger_count_oom(int device)
{
	pthread_mutex_lock(&lock);
	spill_ledger_totals_oom(device);
	pthread_mutex_unlock(&lock);
}

void spill_ledger_held_up(int device, uint64_t us)
{
	pthread_mutex_lock(&lock);
	spill_ledger_totals_held_up(device, us);
	pthread_mutex_unlock(&lock);
}

void spill_ledger_in_place(int device, const struct spill_in_place *now)
{
	if (!lock_soon())
		return;
	spill_ledger_totals_in_place(device, now);
	pthread_mutex_unlock(&lock);
}

static void count_dropped(enum spill_drop kind, const struct spill_sum *sum)
{
	struct spill_totals totals;
	if (!sum->count)
		return;
	spill_ledger_totals(&totals);
	spill_log_drop(kind, sum, &totals);
}

void spill_ledger_offer(const char *line, size_t length, enum spill_log_when when, enum spill_drop kind,
                        const struct spill_bytes *bytes)
{
	if (!spill_log_offer(line, length, when))
		count_dropped(kind, &(struct spill_sum){1, *bytes});
}

/* -- sums of call sites ------------------------------------------------------------------------ */

/* One site at a time, so that the lock is held for a short time only. */
static bool take_sum(struct spill_record_sum *record)
{
	if (!lock_soon())
		return false;
	bool taken = spill_site_sums_take(record);
	if (taken) {
		record->order = next_order++;
		record->level = spill_ledger_totals_level(record->device);
	}
	pthread_mutex_unlock(&lock);
	return taken;
}

static void write_sum(struct spill_record_sum *record)
{
	char *line = spill_scratch_take();
	record->time_us = spill_log_now_us();
	size_t length = line ? spill_record_sum(record, line, SPILL_LOG_LINE) : 0;
	bool taken = spill_log_offer(line, length, SPILL_LOG_SOON);
	spill_scratch_give_back(line);
	if (taken)
		return;
	count_dropped(SPILL_DROP_ALLOC, &record->allocs);
	count_dropped(SPILL_DROP_FREE, &record->frees);
}

void spill_ledger_write_sums(void)
{
	struct spill_record_sum record;
	/* Other threads may go on allocating, so that there is always another one. */
	for (unsigned left = SPILL_SITE_SUMS; left > 0 && take_sum(&record); left--)
		write_sum(&record);
}

#define SUMS_US 1000000
static _Atomic uint64_t sums_due_us; /* of the log's time; 0: no event was summed yet */

void spill_ledger_write_due_sums(uint64_t now_us)
{
	uint64_t due = atomic_load_explicit(&sums_due_us, memory_order_relaxed);
	if (now_us < due || !atomic_compare_exchange_strong(&sums_due_us, &due, now_us + SUMS_US))
		return;
	if (due)
		spill_ledger_write_sums();
}

/* A forked child has no GPU memory, so its ledger is empty. The entries' memory is lost. */
static void forget_parent(void)
{
	for (size_t i = 0; i < BUCKETS; i++)
		buckets[i] = NULL;
	placed = NULL;
	not_in_tree = 0;
	atomic_store(&placed_count, 0);
	spill_ledger_totals_reset();
	spill_site_sums_reset();
	atomic_store(&sums_due_us, 0);
	next_seq = next_order = 1;
}

const struct spill_fork_lock spill_ledger_fork_lock = {&lock, forget_parent};
