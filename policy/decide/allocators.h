/* Libraries that allocate for other code: the list is allocators.def. */
#ifndef SPILL_ALLOCATORS_H
#define SPILL_ALLOCATORS_H

/* What tells more of an allocator's request. */
enum spill_requester_kind {
	SPILL_REQUESTER_NONE,     /* no allocator. */
	SPILL_REQUESTER_FUNCTION, /* the Python function that the thread runs. */
	SPILL_REQUESTER_CODE,     /* the code that called the allocator. */
};

/* The row of a library by its file name. */
enum spill_requester_kind spill_allocator_find(const char *name);

#endif
