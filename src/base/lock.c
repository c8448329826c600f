#include "lock.h"

#include <pthread.h>

void spill_fork_lock_take(const struct spill_fork_lock *fork)
{
	pthread_mutex_lock(fork->lock);
}

void spill_fork_lock_release(const struct spill_fork_lock *fork, bool child)
{
	if (child && fork->forget_parent)
		fork->forget_parent();
	pthread_mutex_unlock(fork->lock);
}
