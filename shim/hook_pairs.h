/*
 * Two rows of hooks.def with one prototype: a function and its form for the per-thread default
 * stream, or a function and its second version. `row` is the macro of both rows, `later` is `since`
 * of the second row.
 */
#ifndef SPILL_HOOK_PAIRS_H
#define SPILL_HOOK_PAIRS_H

#define PTSZ_PAIR(row, domain, ret, symbol, base, since, later, op, ...) \
	row(domain, ret, symbol, base, since, LEGACY, op, __VA_ARGS__) \
	    row(domain, ret, symbol##_ptsz, base, later, PTSZ, op, __VA_ARGS__)
#define PTDS_PAIR(row, domain, ret, symbol, base, since, later, op, ...) \
	row(domain, ret, symbol, base, since, LEGACY, op, __VA_ARGS__) \
	    row(domain, ret, symbol##_ptds, base, later, PTDS, op, __VA_ARGS__)
#define V2_PAIR(row, domain, ret, symbol, since, later, op, ...) \
	row(domain, ret, symbol, symbol, since, LEGACY, op, __VA_ARGS__) \
	    row(domain, ret, symbol##_v2, symbol, later, LEGACY, op, __VA_ARGS__)

#endif
