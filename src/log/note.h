/* Notes to the user. Each text is in the log once. Notes wait until the log is open. */
#ifndef SPILL_NOTE_H
#define SPILL_NOTE_H

#include "lock.h"

/* Notes `text`. `code` is a stable word for programs ("no-vmm"), in static storage. */
void spill_note(const char *code, const char *text);

/* Writes the notes that were kept until the log was open. */
void spill_note_flush(void);

extern const struct spill_fork_lock spill_note_fork_lock;

#endif
