/*
 * The code that asked the caller for memory. All memory of a program may have an allocator as its
 * caller (policy/decide/allocators.def), and that says nothing. This looks further, at a cost of
 * some microseconds: for memory that is placed, moved or refused, not for each request.
 */
#ifndef SPILL_REQUESTER_H
#define SPILL_REQUESTER_H

/*
 * "model.py:Model.forward", or "libllama.so+0x1a2b", for a call of this thread that returns to
 * `site`. Interned: valid for the life of the process. NULL if nobody is known behind the caller.
 */
const char *spill_requester(const void *site);

#endif
