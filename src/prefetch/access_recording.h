/*
 * Records the accesses of a run, for study and for tests (movable.record): the chunks that each
 * launch names, the measured times, and the exchanges. docs/recordings.md describes the format.
 *
 * Nothing here waits for another thread: a line is lost if the lock is contended, and lost lines are
 * counted in the file. A process without such launches makes no file.
 */
#ifndef SPILL_ACCESS_RECORDING_H
#define SPILL_ACCESS_RECORDING_H

#include "exchange_choice.h"
#include "launch_access.h"

/* True if accesses are recorded. Costs a load. */
bool spill_access_recording_on(void);

/*
 * Records a launch before it is submitted. Returns its number, for the line of its time. 0: it is not
 * recorded.
 */
uint64_t spill_access_recording_launch(const struct spill_launch_access *access, uint16_t site);

/* Records the time of a launch with `on_host` bytes on the host. Number 0: does nothing. */
void spill_access_recording_time(uint64_t number, uint64_t on_host, uint64_t ns);

/* An exchange that was considered, and its result. */
struct spill_recorded_exchange {
	uint64_t cost_ns;   /* of a MiB, by which it was decided */
	uint64_t busy_ns;   /* estimated time until the device is idle */
	uint64_t waited_ns; /* for an idle device */
	uint64_t moved_ns;  /* time of the moves; 0: nothing moved */
	uint64_t came;      /* bytes */
};

void spill_access_recording_exchange(const struct spill_exchange_choice *choice,
                                     const struct spill_recorded_exchange *exchange);

/* The placement of earlier exchanges was undone. */
void spill_access_recording_restored(void);

/* Writes the rest. Called when the process ends. Keeps errno. */
void spill_access_recording_flush(void);

void spill_access_recording_reset(void); /* in a forked child */

#endif
