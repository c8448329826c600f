/*
 * What executable graphs use, kept by their handles from instantiation (shim/graph_hints.h) to the launches that tell it
 * (shim/hints.h): addresses only, which are looked up when the graph is launched, because memory moves and is freed meanwhile. Like all
 * hints it may be wrong or missing: that costs time.
 */
#ifndef SPILL_GRAPH_ACCESS_H
#define SPILL_GRAPH_ACCESS_H

#include <stdbool.h>
#include <stdint.h>

/* Of one graph; one that has more has what its first nodes say. More than a use has keys (follow.h). */
#define SPILL_GRAPH_RANGES 4096

struct spill_graph_range {
	uint64_t va,
	    bytes; /* bytes 0: whatever begins at or goes on behind va, as a parameter of a launch says it */
};

struct spill_graph_uses {
	uint64_t site;   /* as struct spill_launch_access has it */
	bool once;       /* copies and sets alone */
	uint64_t memory; /* of the device, that its own memory takes at most; 0: none, or not known */
	uint32_t count;
	const struct spill_graph_range *ranges;
};

/* In place of what was known of the handle. The table keeps a copy, or forgets the handle: nothing is used, or no room. */
void spill_graph_access_keep(const void *exec, const struct spill_graph_uses *uses);
void spill_graph_access_forget(const void *exec);

/* Its memory, as above. It waits for the table. pre: no lock of ours of a higher rank is held */
uint64_t spill_graph_access_memory(const void *exec);

/*
 * Hands what is known to `each`, with the table's lock held (SPILL_RANK_GRAPHS): it takes no lock of a lower rank, and asks the
 * vendor nothing. False: nothing is known, or another thread is at the table: a launch waits for nobody here.
 */
typedef void spill_graph_access_fn(void *closure, const struct spill_graph_uses *uses);
bool spill_graph_access_look(const void *exec, spill_graph_access_fn *each, void *closure);

/* A context has ended, and graphs with it: nobody knows which. */
void spill_graph_access_forget_all(void);

/*
 * In a forked child, which has no GPU. Nothing is given back, and no lock is taken before a fork: a signal handler that forks may have
 * interrupted who holds it.
 */
void spill_graph_access_reset(void);

#endif
