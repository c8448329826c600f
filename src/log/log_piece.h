/* The pieces of a run's log: what is done when its file was rotated, removed, truncated or closed under us. */
#ifndef SPILL_LOG_PIECE_H
#define SPILL_LOG_PIECE_H

#include "log_queue.h"

/*
 * Before every write: false if nothing can be written. Where somebody took our file away or emptied it, the run goes on in
 * another piece: at the same path, or where another process has that, the next (log_name.h), opened as a log is, with the start
 * line again, that says how many lines are in the pieces before it. Where no file can be had there, the one that we have is
 * written on. pre: in a quiet section
 */
bool spill_log_piece_ready(struct spill_logqueue *queue);

#endif
