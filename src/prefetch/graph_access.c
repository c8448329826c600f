#include "graph_access.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define BUCKETS 1024
/* 16 MiB of ranges at most, whatever a program instantiates and never destroys. */
#define MOST_GRAPHS 16384
#define MOST_RANGES (1u << 20)

struct known {
	struct known *next;
	const void *exec;
	struct spill_graph_uses uses;
	struct spill_graph_range ranges[]; /* of them */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* SPILL_RANK_GRAPHS */
static struct known *buckets[BUCKETS];
static _Atomic uint32_t graphs; /* written with the lock held */
static uint32_t ranges;

static struct known **bucket_of(const void *exec)
{
	return &buckets[((uintptr_t)exec >> 4) * 0x9e3779b97f4a7c15ull >> 54];
}

/* pre: locked. Of the link to it, or to the end */
static struct known **link_of(const void *exec)
{
	struct known **link = bucket_of(exec);
	while (*link && (*link)->exec != exec)
		link = &(*link)->next;
	return link;
}

/* pre: locked. The caller frees it */
static struct known *take_out(struct known **link)
{
	struct known *known = *link;
	if (known) {
		*link = known->next;
		graphs--;
		ranges -= known->uses.count;
	}
	return known;
}

void spill_graph_access_keep(const void *exec, const struct spill_graph_uses *uses)
{
	size_t bytes = uses->count * sizeof(uses->ranges[0]);
	struct known *fresh = uses->count || uses->memory ? malloc(sizeof(*fresh) + bytes) : NULL;
	if (fresh) {
		fresh->exec = exec;
		fresh->uses = *uses;
		fresh->uses.ranges = fresh->ranges;
		if (bytes)
			memcpy(fresh->ranges, uses->ranges, bytes);
	}
	pthread_mutex_lock(&lock);
	struct known *old = take_out(link_of(exec));
	if (fresh && graphs < MOST_GRAPHS && ranges + uses->count <= MOST_RANGES) {
		struct known **bucket = bucket_of(exec);
		fresh->next = *bucket;
		*bucket = fresh;
		graphs++;
		ranges += uses->count;
		fresh = NULL;
	}
	pthread_mutex_unlock(&lock);
	free(fresh);
	free(old);
}

void spill_graph_access_forget(const void *exec)
{
	if (!atomic_load(&graphs))
		return;
	pthread_mutex_lock(&lock);
	struct known *old = take_out(link_of(exec));
	pthread_mutex_unlock(&lock);
	free(old);
}

bool spill_graph_access_look(const void *exec, spill_graph_access_fn *each, void *closure)
{
	if (!atomic_load(&graphs) || pthread_mutex_trylock(&lock))
		return false;
	const struct known *known = *link_of(exec);
	if (known)
		each(closure, &known->uses);
	pthread_mutex_unlock(&lock);
	return known;
}

uint64_t spill_graph_access_memory(const void *exec)
{
	if (!atomic_load(&graphs))
		return 0;
	pthread_mutex_lock(&lock);
	const struct known *known = *link_of(exec);
	uint64_t memory = known ? known->uses.memory : 0;
	pthread_mutex_unlock(&lock);
	return memory;
}

/* What a graph uses may be another's memory by now. Its own memory is its own for as long as it lives. */
void spill_graph_access_forget_all(void)
{
	if (!atomic_load(&graphs))
		return;
	pthread_mutex_lock(&lock);
	for (unsigned i = 0; i < BUCKETS; i++)
		for (struct known **link = &buckets[i]; *link;) {
			struct known *known = *link;
			if (!known->uses.memory) {
				free(take_out(link));
				continue;
			}
			ranges -= known->uses.count;
			known->uses.count = 0;
			link = &known->next;
		}
	pthread_mutex_unlock(&lock);
}

void spill_graph_access_reset(void)
{
	pthread_mutex_init(&lock, NULL);
	memset(buckets, 0, sizeof(buckets));
	graphs = 0;
	ranges = 0;
}
