#include "runtime.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "access_recording.h"
#include "account.h"
#include "at_start.h"
#include "device_memory.h"
#include "caller.h"
#include "capture.h"
#include "context_end.h"
#include "config.h"
#include "contexts.h"
#include "ipc.h"
#include "live_page.h"
#include "deferred.h"
#include "engine.h"
#include "launch_access.h"
#include "gate.h"
#include "host_chunks.h"
#include "host_share.h"
#include "host_available.h"
#include "ledger.h"
#include "metrics.h"
#include "vendor_pool.h"
#include "movable.h"
#include "copier.h"
#include "note.h"
#include "loaded_objects.h"
#include "numa.h"
#include "ordered_pool.h"
#include "peer.h"
#include "audit.h"
#include "blocks.h"
#include "in_place.h"
#include "parking.h"
#include "postmortem.h"
#include "chunked.h"
#include "promote.h"
#include "publish_once.h"
#include "reserve.h"
#include "rules.h"
#include "scratch.h"
#include "stderr.h"
#include "vmm.h"

enum state { FRESH, READY, OFF };

static _Atomic enum state state SPILL_AT_START_DATA;

static struct {
	pthread_once_t once;
	const struct spill_shim *_Atomic shim; /* each early thread sets the same */
	struct spill_config config;
	_Atomic int log_opened; /* enum spill_published */
	pid_t owner;            /* process that opened the log */
	_Atomic bool ended;
} runtime = {.once = PTHREAD_ONCE_INIT};

/*
 * Does fork hold the mover? Not if a signal handler forks during a move of its own thread, which
 * goes on after the handler.
 */
static __thread bool fork_has_mover __attribute__((tls_model("initial-exec")));

static const struct spill_fork_lock *const fork_locks[] = {
    [SPILL_RANK_ORDERED_POOL] = &spill_ordered_fork_lock,
    [SPILL_RANK_BLOCKS] = &spill_blocks_fork_lock,
    [SPILL_RANK_DEFERRED] = &spill_deferred_fork_lock,
    [SPILL_RANK_VENDOR_POOL] = &spill_vendor_pool_fork_lock,
    [SPILL_RANK_SHARED_CHUNKS] = &spill_shared_chunks_fork_lock,
    [SPILL_RANK_CHUNKED] = &spill_chunked_fork_lock,
    [SPILL_RANK_RULES] = &spill_growth_state_fork_lock,
    [SPILL_RANK_HOST_CHUNKS] = &spill_host_chunks_fork_lock,
    [SPILL_RANK_IPC_EXPORT] = &spill_ipc_export_fork_lock,
    [SPILL_RANK_IPC_IMPORT] = &spill_ipc_import_fork_lock,
    [SPILL_RANK_METRICS] = &spill_metrics_fork_lock,
    [SPILL_RANK_CONTEXTS] = &spill_contexts_fork_lock,
    [SPILL_RANK_CONTEXT_END] = &spill_context_end_fork_lock,
    [SPILL_RANK_VMM] = &spill_vmm_fork_lock,
    [SPILL_RANK_LEDGER] = &spill_ledger_fork_lock,
    [SPILL_RANK_PEER] = &spill_peer_fork_lock,
    [SPILL_RANK_CAPTURE] = &spill_capture_fork_lock,
    [SPILL_RANK_CALLER] = &spill_caller_fork_lock,
    [SPILL_RANK_HOST_SHARE] = &spill_host_share_fork_lock,
    [SPILL_RANK_NOTE] = &spill_note_fork_lock,
};
#define FORK_LOCKS (sizeof(fork_locks) / sizeof(fork_locks[0]))

/*
 * The mover comes first: the lock of trials is only tried. The locks of log.c and loaded_objects.c
 * have the highest ranks.
 */
static void fork_prepare(void)
{
	fork_has_mover = !spill_mover_is_mine();
	if (fork_has_mover)
		spill_mover_lock(); /* waits for the end of a move */
	for (size_t rank = 0; rank < FORK_LOCKS; rank++)
		if (fork_locks[rank])
			spill_fork_lock_take(fork_locks[rank]);
	spill_log_fork_prepare();
	spill_loaded_objects_fork_prepare();
}

static void fork_done(bool child)
{
	for (size_t rank = FORK_LOCKS; rank-- > 0;)
		if (fork_locks[rank])
			spill_fork_lock_release(fork_locks[rank], child);
	if (fork_has_mover)
		spill_mover_unlock();
}

static void fork_parent(void)
{
	spill_loaded_objects_fork_parent();
	spill_log_fork_parent();
	fork_done(false);
}

/* The child has none of its parent's GPUs. Its first GPU memory call begins a log of its own. */
static void fork_child(void)
{
	spill_loaded_objects_fork_child();
	spill_log_fork_child();
	spill_live_page_fork_child();
	fork_done(true);
	spill_account_reset();
	spill_device_memory_reset();
	atomic_store(&runtime.log_opened, SPILL_UNPUBLISHED);
	atomic_store(&runtime.ended, false);
	spill_host_available_fork_child();
	spill_gate_fork_child();
	spill_mover_fork_child();
	spill_copier_reset();
	spill_parking_reset();
	spill_movable_reset();
	spill_rules_reset();
	spill_promote_reset();
	spill_launch_access_reset();
	spill_postmortem_reset();
	spill_loud_line_reset();
	spill_registry_fork_child();
	spill_thread = (struct spill_thread){0};
}

static void report(const char *code, const char *text)
{
	spill_stderr_line(text);
	spill_note(code, text);
}

/*
 * Reports each problem of the settings on stderr and in the log. Not inlined: a line takes much of
 * the program's stack.
 */
static __attribute__((noinline)) void report_problems(struct spill_config *config)
{
	char line[1280];
	if (config->problem[0]) {
		snprintf(line, sizeof(line), "%s" SPILL_PROBLEM_EFFECT, config->problem);
		report("policy", line);
		spill_postmortem_policy(config->problem);
	}
	char *rest = config->warning;
	for (char *warning = strsep(&rest, "\n"); warning && warning[0]; warning = strsep(&rest, "\n"))
		report("environment", warning);
}

static void use_numa_node(int node)
{
	char text[128];
	if (spill_numa_use("", node))
		return;
	snprintf(text, sizeof(text),
	         "this machine has no memory on node %d (host.numa); the node nearest to the device is used",
	         node);
	spill_note("host-numa", text);
}

_Static_assert(sizeof(struct spill_log_device[SPILL_DEVICES]) <= SPILL_SCRATCH,
               "the devices fit into a scratch buffer");

/* Opens the log with its start line. pre: the vendor's driver is initialised */
static void open_log(const struct spill_backend *backend)
{
	int cancel;
	if (spill_is_published(&runtime.log_opened))
		return;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	struct spill_log_device *devices = spill_scratch_take();
	struct spill_log_start line = {
	    .backend = backend->name,
	    .driver_version = backend->driver_version(),
	    .devices = devices,
	    .device_count = devices ? backend->devices->list(devices, SPILL_DEVICES) : 0,
	    .options = runtime.config.options,
	    .option_count = runtime.config.option_count,
	};
	for (unsigned i = 0; i < line.device_count; i++) {
		devices[i].memory =
		    spill_policy_memory(&runtime.config.policy, backend->devices->capabilities((int)i));
		if (devices[i].memory == SPILL_MEMORY_INTEGRATED)
			spill_reserve_leave_out((int)i);
	}
	runtime.shim->note_bypass();
	if (spill_publish_begin(&runtime.log_opened)) {
		runtime.owner = getpid();
		spill_log_open(&runtime.config.policy, &line);
		spill_live_page_open(&runtime.config.policy, &line);
		spill_metrics_open(&runtime.config.policy, &line);
		spill_note_flush();
		spill_publish_done(&runtime.log_opened);
	}
	spill_scratch_give_back(devices);
	pthread_setcancelstate(cancel, NULL);
}

static void start(void)
{
	const struct spill_shim *shim = runtime.shim;
	spill_registry_use(&shim->symbols);
	spill_registry_use_backend(SPILL_CUDA_DRIVER, &spill_backend_cuda);
	spill_registry_use_backend(SPILL_HIP, &spill_backend_hip);
	spill_gate_use(shim->counters, spill_engine_maintain);
	spill_chunked_observe(spill_launch_access_moved);
	spill_engine_on_memory_call(open_log);
	spill_config_load(&runtime.config, NULL);
	spill_process_use_policy(&runtime.config.policy);
	if (runtime.config.policy.mode == SPILL_MODE_OFF) {
		atomic_store(&state, OFF);
		return;
	}
	report_problems(&runtime.config);
	spill_host_available_at_start();
	use_numa_node(runtime.config.policy.host_numa);
	if (runtime.config.policy.host_share && !getauxval(AT_SECURE))
		spill_host_share_use(NULL, spill_host_job());
	pthread_atfork(fork_prepare, fork_parent, fork_child);
	atomic_store(&state, READY);
}

SPILL_AT_START_CODE bool spill_runtime_started(void)
{
	return atomic_load_explicit(&state, memory_order_acquire) == READY;
}

bool spill_runtime_ready(const struct spill_shim *shim)
{
	enum state now = atomic_load_explicit(&state, memory_order_acquire);
	if (now == FRESH) {
		if (spill_config_disabled()) {
			atomic_store(&state, OFF);
			return false;
		}
		int error = errno;
		int cancel;
		pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel); /* starting reads files */
		spill_thread.depth++; /* functions that start() calls may be hooked */
		runtime.shim = shim;
		/* start() does not call the loader or the vendor: see publish_once.h. */
		pthread_once(&runtime.once, start);
		spill_thread.depth--;
		pthread_setcancelstate(cancel, NULL);
		errno = error;
		now = atomic_load(&state);
	}
	return now == READY;
}

void spill_runtime_exit(const char *how)
{
	struct spill_totals totals;
	spill_access_recording_flush();
	/* Not in another process that shares our memory (vfork, a bare clone). */
	bool ours = atomic_load(&state) == READY && spill_is_published(&runtime.log_opened) &&
	            runtime.owner == getpid();
	if (ours) {
		spill_in_place_tell(true);
		spill_audit_tell();
	}
	spill_metrics_end();
	if (!ours || (!spill_log_active() && runtime.config.policy.log_stderr == SPILL_STDERR_OFF) ||
	    atomic_load(&runtime.ended))
		return;
	spill_ledger_write_sums();
	if (!spill_ledger_totals_now(&totals) || atomic_exchange(&runtime.ended, true))
		return;
	const struct spill_shim *shim = runtime.shim;
	uint64_t time_us = spill_log_now_us();
	if (spill_log_active()) {
		size_t length = spill_record_exit(time_us, how, &totals, shim->exit_hits, shim->hits(),
		                                  shim->exit_line, shim->exit_line_size);
		spill_log_write(shim->exit_line, length, SPILL_LOG_NOW);
	}
	spill_postmortem_exit(how, &totals, time_us, shim->exit_line, shim->exit_line_size);
}
