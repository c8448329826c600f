#include "objects.h"

#include <pthread.h>

/* Recursive, as the loader's: a signal handler may come within a look, and look itself, or fork. */
#define FREE PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP
static pthread_mutex_t lock = FREE;

int spill_objects_visit(int (*visit)(struct dl_phdr_info *info, size_t size, void *data), void *data)
{
	pthread_mutex_lock(&lock);
	int found = dl_iterate_phdr(visit, data);
	pthread_mutex_unlock(&lock);
	return found;
}

void spill_objects_fork_prepare(void)
{
	pthread_mutex_lock(&lock);
}

void spill_objects_fork_parent(void)
{
	pthread_mutex_unlock(&lock);
}

/* The child's only thread has another number than the one that took the lock, so it could not give it back. */
void spill_objects_fork_child(void)
{
	lock = (pthread_mutex_t)FREE;
}
