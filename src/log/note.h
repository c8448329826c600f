/*
 * Notes: what a person should know, once. Kept until the log is open; each code and text is noted once a run.
 */
#ifndef SPILL_NOTE_H
#define SPILL_NOTE_H

/* `code` is a stable word for programs ("no-vmm"); static storage. */
void spill_note(const char *code, const char *text);

/* From now on notes go to `sink` alone, each of them; NULL: to the log. For tests. */
void spill_note_use(void (*sink)(const char *code, const char *text));

/* Writes the notes that came before the log was open. */
void spill_note_flush(void);

void spill_note_fork_prepare(void);
void spill_note_fork_done(void);

#endif
