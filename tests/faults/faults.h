/*
 * A preload that lets single calls of libspill fail: those that it makes of libc (libc.c) and those
 * that it makes of the simulated driver (vendor.c). Calls of the program never fail. The calls are
 * found in libspill.so itself, by its imports and by the address of the caller, so that a new call
 * is covered without being named.
 *
 * FAULTS         the plan: NAME[@OFFSET]:N[+]:ERROR, separated by commas. The Nth call of NAME fails;
 *                with + each later one, too. OFFSET: only calls from there are counted, a place in
 *                the code of libspill.so. ERROR is an errno, a vendor's error, `short` or `nothing`.
 *                NAME `libc` or `vendor`: any call of that side. ERROR 0: the first of the function.
 * FAULTS_REPORT  the file that is written at the end of the process (report.c)
 * FAULTS_STUBS   a file of the stubs, which make the program's own calls: BEGIN END NAME, sorted
 */
#ifndef FAULTS_H
#define FAULTS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Instead of an error. */
#define SHORT (-1)
#define NOTHING (-2)

/* A function that libspill calls. */
struct faults_call {
	const char *name;
	bool vendor;
	const int *errors; /* of libc only; 0 ends them */
};

/* plan.c: counts the call. True: it is to fail now with *error. */
bool faults_now(const struct faults_call *call, const void *caller, int *error);
void faults_read_plan(void); /* ends the process if FAULTS is wrong */

/* A place in libspill.so that calls a function. */
struct faults_place {
	const struct faults_call *call; /* NULL: none here */
	unsigned long offset;
	unsigned count;
	bool strict; /* made a call that a capture may forbid, in a strict thread */
};
const struct faults_place *faults_place(unsigned index); /* NULL: no more */

/* The call, which faults_now has counted, would break a capture if there were one. */
void faults_note_strict(const struct faults_call *call, const void *caller);

/* A fault that happened. */
struct faults_met {
	const char *name;
	int error;
	unsigned long offset;
};
unsigned faults_met(const struct faults_met **list);

/* object.c: libspill.so in this process. */
struct faults_object {
	uintptr_t base, begin, end; /* where it is, and its code */
	const void *dynamic;
	uintptr_t read_only, read_only_end; /* of its data, once it is relocated */
};
const struct faults_object *faults_library(void);
/* `caller` is in libspill.so, and is not the stub that calls `symbol` on behalf of the program. */
bool faults_own(const char *symbol, const void *caller);

/* libc.c */
void faults_replace_imports(void);
const struct faults_call *faults_libc(unsigned index); /* NULL: no more */

/* blocks.c */
void faults_block_taken(uintptr_t block, const void *caller);
void faults_block_given(uintptr_t block);
/* False: there is none at this index, of faults_block_room. */
bool faults_block(unsigned index, unsigned long *offset);
unsigned faults_block_room(void);

_Noreturn void faults_die(const char *what, const char *which);

#endif
