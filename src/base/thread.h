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

/*
 * For the end of the process: joins a thread that was told to end. Waits some seconds at most, as a
 * driver's call that does not return must not keep the process.
 */
void spill_thread_end(pthread_t thread);

#endif
