#include "graph_ask.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "real.h"

#define X(symbol, params, args) \
	bool spill_ask_##symbol params \
	{ \
		typedef CUresult function params; \
		static _Atomic(void *) known; \
		function *real = (function *)spill_real_once(&known, SPILL_CUDA_DRIVER, #symbol); \
		return real && !real args; \
	}
SPILL_GRAPH_QUESTIONS(X)
#undef X

bool spill_graph_list(CUgraph graph, CUgraphNode **nodes, size_t *count)
{
	*nodes = NULL;
	if (!spill_ask_cuGraphGetNodes(graph, NULL, count))
		return false;
	if (!*count)
		return true;
	*nodes = calloc(*count, sizeof(CUgraphNode));
	if (*nodes && spill_ask_cuGraphGetNodes(graph, *nodes, count))
		return true;
	free(*nodes);
	return false;
}
