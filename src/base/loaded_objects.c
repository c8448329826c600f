#include "loaded_objects.h"

#include <pthread.h>

#include "clock.h"

/*
 * Looks exclude a fork, never each other: one that comes from inside the loader (a callback of the program's dl_iterate_phdr) would
 * wait for one that waits for the loader. Default attributes: a new look does not wait behind a fork that waits.
 */
#define FREE PTHREAD_RWLOCK_INITIALIZER
static pthread_rwlock_t lock = FREE;

/* Set while this thread looks: a signal handler may come within, and look itself, or fork. */
static __thread volatile bool looking __attribute__((tls_model("initial-exec")));
static bool fork_took_lock;

int spill_loaded_objects_visit(int (*visit)(struct dl_phdr_info *info, size_t size, void *data), void *data)
{
	bool outer = !looking;
	if (outer) {
		looking = true;
		pthread_rwlock_rdlock(&lock);
	}
	int found = dl_iterate_phdr(visit, data);
	if (outer) {
		pthread_rwlock_unlock(&lock);
		looking = false;
	}
	return found;
}

bool spill_loaded_objects_looking(void)
{
	return looking;
}

/* Looks are short. One that is not ended waits for the loader, maybe for this thread: it is not waited for for ever. */
#define WAIT_NS 100000000

void spill_loaded_objects_fork_prepare(void)
{
	struct timespec until = spill_clock_in(WAIT_NS);
	fork_took_lock = !looking && pthread_rwlock_clockwrlock(&lock, CLOCK_MONOTONIC, &until) == 0;
}

void spill_loaded_objects_fork_parent(void)
{
	if (fork_took_lock)
		pthread_rwlock_unlock(&lock);
}

/* A look that a handler's fork came into ends in the child, too, and gives back what it has. */
void spill_loaded_objects_fork_child(void)
{
	lock = (pthread_rwlock_t)FREE;
	if (looking)
		pthread_rwlock_rdlock(&lock);
}
