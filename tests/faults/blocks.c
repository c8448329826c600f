/* Memory that libspill has from malloc, by the place that asked for it. */
#include "faults.h"

#include <pthread.h>
#include <string.h>

#define BLOCKS (1u << 16)

static struct {
	uintptr_t block; /* 0: free */
	unsigned long offset;
} blocks[BLOCKS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static unsigned slot_of(uintptr_t block)
{
	return (unsigned)((block >> 4) * 2654435761u) % BLOCKS;
}

/* The block, or the free slot where it would be. pre: locked */
static unsigned find(uintptr_t block)
{
	unsigned i = slot_of(block), looks = 0;

	while (blocks[i].block && blocks[i].block != block && looks++ < BLOCKS)
		i = (i + 1) % BLOCKS;
	if (looks > BLOCKS)
		faults_die("too many blocks of", "malloc");
	return i;
}

void faults_block_taken(uintptr_t block, const void *caller)
{
	pthread_mutex_lock(&lock);
	unsigned i = find(block);
	blocks[i].block = block;
	blocks[i].offset = (uintptr_t)caller - faults_library()->base;
	pthread_mutex_unlock(&lock);
}

/* Blocks behind it move up, so that none is behind a free slot. */
void faults_block_given(uintptr_t block)
{
	pthread_mutex_lock(&lock);
	unsigned hole = find(block);
	blocks[hole].block = 0;
	for (unsigned i = (hole + 1) % BLOCKS; blocks[i].block; i = (i + 1) % BLOCKS) {
		unsigned wanted = slot_of(blocks[i].block);

		if ((i - wanted) % BLOCKS < (i - hole) % BLOCKS)
			continue;
		blocks[hole] = blocks[i];
		blocks[i].block = 0;
		hole = i;
	}
	pthread_mutex_unlock(&lock);
}

bool faults_block(unsigned index, unsigned long *offset)
{
	if (blocks[index].block)
		*offset = blocks[index].offset;
	return blocks[index].block;
}

unsigned faults_block_room(void)
{
	return BLOCKS;
}
