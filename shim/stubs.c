/*
 * The stubs, generated from the table. Each row has one function per way in, so that hits are
 * counted by way. A stub fills in the request and runs the loop of request.h; the engine decides.
 * Rows that submit work have lighter stubs (work.h).
 */
#include <errno.h>

#include "abi/cuda.h"
#include "abi/cuda_work.h"
#include "abi/cudart.h"
#include "abi/hip.h"
#include "abi/hip_later.h"
#include "abi/nvml.h"
#include "descriptors.h"
#include "graph_hints.h"
#include "graph_copies.h"
#include "graph_access.h"
#include "hooks.h"
#include "layouts.h"
#include "real.h"
#include "process.h"
#include "runtime.h"
#include "stderr.h"
#include "work.h"

_Atomic uint64_t spill_row_hits[SPILL_HOOKS][SPILL_WAYS_COUNT];

/*
 * Room for an exit line with every row and way:
 * `{"symbol":"…","way":"dlsym","count":18446744073709551615},`
 */
#define HOOK(domain, ret, symbol, ...) +sizeof(#symbol) + 60
static struct spill_hits exit_hits[SPILL_HOOKS * SPILL_WAYS_COUNT];
static char exit_line[4096 + SPILL_WAYS_COUNT * (0
#include "hooks.def"
                                                 )];

static unsigned collect_hits(void)
{
#define X(id, name) name,
	static const char *const ways[SPILL_WAYS_COUNT] = {SPILL_WAYS(X)};
#undef X
	unsigned count = 0, work = 0; /* work: index in enum spill_work */
	for (int row = 0; row < SPILL_HOOKS; row++) {
		bool counted = spill_rows[row].op == SPILL_OP_GATE;
		for (int way = 0; way < SPILL_WAYS_COUNT; way++) {
			uint64_t seen = atomic_load_explicit(&spill_row_hits[row][way], memory_order_relaxed);
			if (counted)
				seen += spill_gate_counted(spill_work_counter(work, way));
			if (seen)
				exit_hits[count++] =
				    (struct spill_hits){spill_rows[row].symbol, ways[way], seen};
		}
		work += counted;
	}
	return count;
}

static const struct spill_shim shim = {
    .symbols = {.resolve = spill_real_resolve, .beside = spill_real_beside},
    .hits = collect_hits,
    .exit_hits = exit_hits,
    .exit_line = exit_line,
    .exit_line_size = sizeof(exit_line),
    .counters = SPILL_WORK_COUNTERS,
    .note_bypass = spill_lookup_note_wrapper,
};

bool spill_shim_ready(void)
{
	return spill_runtime_ready(&shim);
}

/* A call of NVML starts nothing, because a monitor does not use the GPU. */
static bool is_ready_for(const struct spill_row *row)
{
	return row->domain == SPILL_NVML ? spill_runtime_started() : spill_runtime_ready(&shim);
}

static void *begin_request(struct spill_request *request)
{
	const struct spill_row *row = &spill_rows[request->hook];
	int error = errno;
	atomic_fetch_add_explicit(&spill_row_hits[request->hook][request->way], 1, memory_order_relaxed);
	if (request->other_op)
		request->op = request->other_op;
	request->pass = spill_thread.depth || !is_ready_for(row);
	void *real = spill_real(row, request->caller);
	request->real = real;
	errno = error;
	return real;
}

/* Describes a graph node that allocates, frees, or does neither. */
#define GRAPH_NODE(params, allocates, frees) \
	.bytes = params && params->type == allocates ? params->alloc.bytesize : 0, \
	.out = params && params->type == allocates ? &params->alloc.dptr : NULL, \
	.ptr = params && params->type == frees ? (uintptr_t)params->free.dptr : 0, \
	.other_op = params && params->type == frees ? SPILL_OP_GRAPH_FREE : 0

#define STUB(linkage, function, way_in, domain_, ret, symbol, variant_, op_, params, args, ...) \
	linkage ret function params \
	{ \
		typedef ret real_function params; \
		struct spill_request request = { \
		    .hook = SPILL_HOOK_##symbol, \
		    .op = SPILL_OP_##op_, \
		    .domain = SPILL_##domain_, \
		    .way = SPILL_WAY_##way_in, \
		    .per_thread = SPILL_VARIANT_##variant_ != SPILL_VARIANT_LEGACY, \
		    .api = #symbol, \
		    .caller = __builtin_return_address(0), \
		    __VA_ARGS__ /* may be empty */ \
		}; \
		real_function *real = (real_function *)begin_request(&request); \
		if (!real) \
			return (ret)SPILL_NOT_INITIALIZED_IN(SPILL_##domain_); \
		if (spill_layouts_end_with(SPILL_OP_##op_)) \
			spill_layouts_forget(); \
		if (SPILL_OP_##op_ == SPILL_OP_GRAPH_END) { \
			spill_graph_copies_end((CUgraphExec)request.handle); \
			spill_graph_access_forget((const void *)request.handle); \
		} \
		while (spill_request_next(&request)) \
			request.result = (int)real args; \
		if (SPILL_OP_##op_ == SPILL_OP_RESOLVE && request.result == 0) \
			spill_lookup_substitute(&request); \
		if ((SPILL_OP_##op_ == SPILL_OP_ROOM || SPILL_OP_##op_ == SPILL_OP_GRAPH_CHANGE) && \
		    request.graph && request.result == 0 && !request.pass) \
			spill_graph_changed(request.graph); \
		return (ret)request.result; \
	}

/* Only the exported symbol needs a declaration. The other two are reached by address. */
#define HOOK(domain, ret, symbol, base, since, variant, op, params, args, ...) \
	__attribute__((visibility("default"))) ret symbol params; \
	STUB(, symbol, LINK, domain, ret, symbol, variant, op, params, args, __VA_ARGS__) \
	STUB(static, symbol##_dlsym, DLSYM, domain, ret, symbol, variant, op, params, args, __VA_ARGS__) \
	STUB(static, symbol##_proc, PROC, domain, ret, symbol, variant, op, params, args, __VA_ARGS__)
#define WORK(domain, ret, symbol, base, since, variant, op, params, args) \
	__attribute__((visibility("default"))) ret symbol params; \
	SPILL_WORK_STUB(, symbol, LINK, ret, symbol, params, args) \
	SPILL_WORK_STUB(static, symbol##_dlsym, DLSYM, ret, symbol, params, args) \
	SPILL_WORK_STUB(static, symbol##_proc, PROC, ret, symbol, params, args)
#define HINTED(domain, ret, symbol, base, since, variant, op, params, args, ...) \
	__attribute__((visibility("default"))) ret symbol params; \
	HINTED_STUB(, symbol, LINK, variant, ret, symbol, params, args, __VA_ARGS__) \
	HINTED_STUB(static, symbol##_dlsym, DLSYM, variant, ret, symbol, params, args, __VA_ARGS__) \
	HINTED_STUB(static, symbol##_proc, PROC, variant, ret, symbol, params, args, __VA_ARGS__)
#define HINTED_STUB(linkage, function, way, variant, ret, symbol, params, args, ...) \
	SPILL_HINTED_STUB(linkage, function, way, ret, symbol, params, args, \
	                  .per_thread = SPILL_VARIANT_##variant != SPILL_VARIANT_LEGACY, __VA_ARGS__)
#include "hooks.def"

const struct spill_row spill_rows[SPILL_HOOKS] = {
#define HOOK(domain, ret, symbol, base, since, variant, op, ...) \
	{#symbol, #base, SPILL_##domain, since, SPILL_VARIANT_##variant, SPILL_OP_##op},
#include "hooks.def"
};
#define HOOK(domain, ret, symbol, ...) \
	_Static_assert(sizeof(#symbol) <= SPILL_SYMBOL_MAX, "a row has room for its symbol");
#include "hooks.def"

#define HOOK(domain, ret, symbol, ...) \
	extern __typeof__(symbol) symbol##_link __attribute__((alias(#symbol), visibility("hidden")));
#include "hooks.def"

/* Code, for the same reason that names are arrays. */
void *spill_stub(enum spill_hook hook, enum spill_way way)
{
	switch (hook) {
#define HOOK(domain, ret, symbol, ...) \
	case SPILL_HOOK_##symbol: \
		return way == SPILL_WAY_LINK    ? (void *)symbol##_link \
		       : way == SPILL_WAY_DLSYM ? (void *)symbol##_dlsym \
		                                : (void *)symbol##_proc;
#include "hooks.def"
	default:
		return NULL;
	}
}

/* A process without GPU calls does nothing but this fstat. */
__attribute__((constructor)) static void remember_stderr(void)
{
	spill_stderr_remember();
}
