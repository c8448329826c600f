#include "postmortem.h"

#include <limits.h>
#include <stdatomic.h>

#include "in_place.h"
#include "oom_report.h"
#include "process.h"
#include "config.h"
#include "ledger.h"
#include "log.h"
#include "stderr.h"

_Static_assert(SPILL_STDERR_BLOCK <= PIPE_BUF, "a pipe could cut the block");

static _Atomic bool reported;
static _Atomic uint64_t by_oom, by_limit, by_rule;
static const char *_Atomic policy_problem;

void spill_postmortem_policy(const char *problem)
{
	atomic_store(&policy_problem, problem);
}

bool spill_postmortem_due(enum spill_refused_by refused_by)
{
	enum spill_log_stderr how = spill_process_policy()->log_stderr;
	if (how == SPILL_STDERR_OFF || refused_by == SPILL_REFUSED_BY_HONEST_FIRST)
		return false;
	return !atomic_exchange(&reported, true) || how == SPILL_STDERR_ALL;
}

static bool follow_is_off(void)
{
	return spill_process_policy()->movable_follow == SPILL_FOLLOW_OFF;
}

void spill_postmortem_tell(const struct spill_record_oom *oom, char buffer[SPILL_STDERR_BLOCK])
{
	struct spill_totals totals;
	char program[256];
	spill_in_place_tell(false);
	spill_ledger_totals(&totals);
	spill_program_name(program, sizeof(program));
	const struct spill_report_process process = {.program = program,
	                                             .log = spill_log_path(),
	                                             .totals = &totals,
	                                             .run_us = oom->time_us,
	                                             .problem = atomic_load(&policy_problem),
	                                             .follow_off = follow_is_off()};
	spill_stderr_lines(buffer, spill_oom_report(&process, oom, buffer, SPILL_STDERR_BLOCK));
}

void spill_postmortem_count(enum spill_reason reason, uint64_t bytes)
{
	atomic_fetch_add(reason == SPILL_REASON_OOM     ? &by_oom
	                 : reason == SPILL_REASON_LIMIT ? &by_limit
	                                                : &by_rule,
	                 bytes);
}

void spill_postmortem_exit(const char *how, const struct spill_totals *totals, uint64_t time_us, char *buffer,
                           size_t size)
{
	enum spill_log_stderr mode = spill_process_policy()->log_stderr;
	if (mode == SPILL_STDERR_OFF)
		return;
	char program[256];
	spill_program_name(program, sizeof(program));
	const struct spill_report_process process = {.program = program,
	                                             .log = spill_log_path(),
	                                             .totals = totals,
	                                             .run_us = time_us,
	                                             .follow_off = follow_is_off()};
	const struct spill_bytes_by_reason by_reason = {by_oom, by_limit, by_rule};
	size = size < SPILL_STDERR_BLOCK ? size : SPILL_STDERR_BLOCK;
	size_t length = mode == SPILL_STDERR_ALL ? spill_exit_report(&process, how, &by_reason, buffer, size)
	                                         : spill_end_line(&process, buffer, size);
	if (length)
		spill_stderr_lines(buffer, length);
}

void spill_postmortem_reset(void)
{
	reported = false;
	by_oom = by_limit = by_rule = 0;
}
