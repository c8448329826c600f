/* Shared by contract tests of graphs: a stream, zeroed words, and graphs that run. */
#ifndef DRIVER_GRAPH_TEST_H
#define DRIVER_GRAPH_TEST_H

#include "driver_test.h"

static CUstream stream;
static CUdeviceptr memory; /* 1 MiB of zeroed words */

static inline void begin_graph_tests(void)
{
	start();
	OK(d.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	OK(d.cuMemAlloc_v2(&memory, MIB));
	OK(d.cuMemsetD8_v2(memory, 0, MIB));
	OK(d.cuCtxSynchronize());
}

static inline CUgraph graph_new(void)
{
	CUgraph graph;

	OK(d.cuGraphCreate(&graph, 0));
	return graph;
}

static inline CUgraphExec exec_new(CUgraph graph, unsigned flags)
{
	CUgraphExec exec;

	OK(d.cuGraphInstantiateWithFlags(&exec, graph, flags));
	return exec;
}

static inline void run(CUgraphExec exec)
{
	OK(d.cuGraphLaunch(exec, stream));
	OK(d.cuStreamSynchronize(stream));
}

#endif
