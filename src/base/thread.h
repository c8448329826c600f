/* Threads of our own in the program's process. They must not show in how the program behaves. */
#ifndef SPILL_BASE_THREAD_H
#define SPILL_BASE_THREAD_H

#include <pthread.h>
#include <stdbool.h>

/*
 * Starts a thread that gets none of the program's signals. Its stack is small. False if there is no
 * thread. May allocate.
 */
bool spill_thread_start(pthread_t *thread, void *(*run)(void *unused));

#endif
