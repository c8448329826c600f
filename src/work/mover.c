#include "mover.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

static pthread_mutex_t mover_lock = PTHREAD_MUTEX_INITIALIZER; /* SPILL_RANK_MOVER */
static _Atomic unsigned waiting;                               /* threads that wait for it */
static void (*_Atomic landing)(void);

/* A thread that is cancelled while it holds the lock would never release it. */
static __thread struct {
	bool held;
	int cancel; /* the cancellation state before */
} this_thread __attribute__((tls_model("initial-exec")));

static void note_held(int cancel)
{
	this_thread.held = true;
	this_thread.cancel = cancel;
}

void spill_mover_use_landing(void (*land)(void))
{
	atomic_store(&landing, land);
}

static void land(void)
{
	void (*call)(void) = atomic_load(&landing);
	if (call)
		call();
}

void spill_mover_lock(void)
{
	int cancel;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	atomic_fetch_add(&waiting, 1);
	pthread_mutex_lock(&mover_lock);
	atomic_fetch_sub(&waiting, 1);
	note_held(cancel);
	land();
}

bool spill_mover_trylock(void)
{
	bool held = spill_mover_trylock_in_flight();
	if (held)
		land();
	return held;
}

bool spill_mover_trylock_in_flight(void)
{
	int cancel;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	if (pthread_mutex_trylock(&mover_lock) == 0) {
		note_held(cancel);
		return true;
	}
	pthread_setcancelstate(cancel, NULL);
	return false;
}

void spill_mover_unlock(void)
{
	int cancel = this_thread.cancel;
	this_thread.held = false;
	pthread_mutex_unlock(&mover_lock);
	pthread_setcancelstate(cancel, NULL);
}

bool spill_mover_wanted(void)
{
	return atomic_load(&waiting);
}

bool spill_mover_is_mine(void)
{
	return this_thread.held;
}

bool spill_mover_busy(void)
{
	if (!spill_mover_trylock())
		return true;
	spill_mover_unlock();
	return false;
}

void spill_mover_fork_child(void)
{
	atomic_store(&waiting, 0);
}
