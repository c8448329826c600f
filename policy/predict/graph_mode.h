/*
 * How a graph is launched while some of its memory is on the host: as a whole, or node by node.
 *
 * A graph names the memory of all its kernels, so nothing can be exchanged for a part of it. Launched node by
 * node, it is like a program without graphs: memory comes before the nodes that use it. That helps where kernels
 * read their memory many times, and costs where they read it once (docs/adr/0044-graphs-node-by-node.md).
 *
 * So the time of whole launches is compared with what copying would take. Where it is much longer, some launches
 * are made node by node, and the better way is kept. Trials of placements (placement_trial.h) make whole launches
 * faster, too, but take longer to find one. So now and then it is looked whether whole launches are better by now.
 */
#ifndef SPILL_GRAPH_MODE_H
#define SPILL_GRAPH_MODE_H

#include <stdbool.h>
#include <stdint.h>

#define SPILL_GRAPH_MODE_SAMPLES 3

enum spill_graph_phase {
	SPILL_GRAPH_WHOLE, /* launches are whole */
	SPILL_GRAPH_TRIES, /* launches are made node by node, to see what they take */
	SPILL_GRAPH_NODES, /* launches are made node by node, because they take less */
	SPILL_GRAPH_LOOKS, /* launches are whole for a while, to see whether they take less by now */
};

/* Of one graph. All zero: nothing is known of it. */
struct spill_graph_mode {
	uint64_t site; /* the caller's: names the graph's kernels */
	enum spill_graph_phase phase;
	uint64_t samples[SPILL_GRAPH_MODE_SAMPLES]; /* the last ones of the phase, ns */
	unsigned sampled, launches;                 /* in the phase */
	uint64_t copy_ns;                           /* what copying would take at the last whole launch */
	uint64_t whole_ns;                          /* what a whole launch takes */
	uint64_t nodes_ns;                          /* what one node by node took when it was kept */
	uint64_t next_ns;                           /* no trial and no look before */
	uint64_t wait_ns, look_ns; /* how long it was waited for the last trial, and the last look */
	const void *stream;        /* of the whole launches of this phase */
};

/*
 * Called before a whole launch. `copy_ns`: what it would take to exchange its memory on the host. True: time the
 * launch, and pass its time to spill_graph_mode_sample.
 */
bool spill_graph_mode_whole(struct spill_graph_mode *mode, const void *stream, uint64_t copy_ns,
                            uint64_t now_ns);

/* True: launch it node by node. Called before each launch for which that is possible. */
bool spill_graph_mode_by_nodes(struct spill_graph_mode *mode, uint64_t now_ns);

/* A launch was measured: a whole one, or one made node by node. Begins and ends trials. */
void spill_graph_mode_sample(struct spill_graph_mode *mode, bool by_nodes, uint64_t ns, uint64_t now_ns);

/* The nodes cannot be launched now: the driver has refused the first, or the stream was busy for long. */
void spill_graph_mode_refused(struct spill_graph_mode *mode, uint64_t now_ns);

/* True: launches may soon be made node by node, so the nodes should be known. */
bool spill_graph_mode_wants_nodes(const struct spill_graph_mode *mode, uint64_t now_ns);

#endif
