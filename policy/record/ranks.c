#include "ranks.h"

#include <stddef.h>
#include <string.h>

const char *spill_rank_variable(enum spill_rank rank)
{
	static const char *const names[] = {
#define X(id, name, text) name,
	    SPILL_RANKS(X)
#undef X
	};

	return names[rank];
}

/* The first of these that is set. */
static const char *first_set(const struct spill_record_ranks *ranks, enum spill_rank from, enum spill_rank to)
{
	const char *value = NULL;

	for (unsigned i = from; i <= to && !value; i++)
		value = ranks->of[i];
	return value;
}

const char *spill_ranks_rank(const struct spill_record_ranks *ranks)
{
	return first_set(ranks, SPILL_RANK_RANK, SPILL_RANK_JOB_COMPLETION_INDEX);
}

const char *spill_ranks_job(const struct spill_record_ranks *ranks)
{
	const char *job = first_set(ranks, SPILL_RANK_SLURM_JOB_ID, SPILL_RANK_TORCHELASTIC_RUN_ID);

	/* torchrun's word for a job without a name */
	if (!job || !strcmp(job, "none"))
		job = ranks->of[SPILL_RANK_PMIX_NAMESPACE];
	return job;
}
