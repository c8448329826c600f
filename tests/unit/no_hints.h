/* In place of real.c, hints.c, layouts.c and graph_hints.c, for tests of the stubs' rows alone: nothing is looked at. */
#ifndef SPILL_TEST_NO_HINTS_H
#define SPILL_TEST_NO_HINTS_H

#include "graph_copies.h"
#include "graph_hints.h"
#include "graph_launch.h"
#include "hints.h"
#include "layouts.h"
#include "real.h"

void *spill_real_beside(const void *address, const char *symbol)
{
	return NULL;
}

void *spill_hint(const struct spill_hint *hint)
{
	return NULL;
}

void spill_layouts_forget(void)
{
}

void spill_graph_changed(const struct spill_graph_change *change)
{
}

bool spill_graph_launch(const struct spill_hint *hint, bool may, CUresult *result)
{
	return false;
}

void spill_graph_copies_end(CUgraphExec exec)
{
}

#endif
