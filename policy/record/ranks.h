/*
 * The rank of a process in a job of several processes, by the variables that launchers set. Pure:
 * the caller reads the environment, or a start line.
 */
#ifndef SPILL_RANKS_H
#define SPILL_RANKS_H

/*
 * THE list of these variables. The first ones, up to JOB_COMPLETION_INDEX, are the rank among all
 * processes of the job. Those from SLURM_JOB_ID to PMIX_NAMESPACE name the job. Of each kind the
 * first one that is set counts. Slurm sets SLURM_PROCID in a batch script, and Kubernetes an index
 * in each Pod, and launchers may start several ranks there. So these two come last.
 */
#define SPILL_RANKS(X) \
	X(RANK, "RANK", "rank among all processes of the job, from torchrun and others") \
	X(OMPI_COMM_WORLD_RANK, "OMPI_COMM_WORLD_RANK", "the same from Open MPI") \
	X(PMIX_RANK, "PMIX_RANK", "the same from PMIx") \
	X(PMI_RANK, "PMI_RANK", "the same from MPICH and Intel MPI") \
	X(SLURM_PROCID, "SLURM_PROCID", "the same from Slurm") \
	X(JOB_COMPLETION_INDEX, "JOB_COMPLETION_INDEX", \
	  "index of the Pod in an indexed Job, from Kubernetes") \
	X(LOCAL_RANK, "LOCAL_RANK", "rank among the processes of this machine, from torchrun and others") \
	X(OMPI_COMM_WORLD_LOCAL_RANK, "OMPI_COMM_WORLD_LOCAL_RANK", "the same from Open MPI") \
	X(SLURM_LOCALID, "SLURM_LOCALID", "the same from Slurm") \
	X(WORLD_SIZE, "WORLD_SIZE", "number of processes of the job, from torchrun and others") \
	X(SLURM_JOB_ID, "SLURM_JOB_ID", "number of the job, from Slurm") \
	X(PBS_JOBID, "PBS_JOBID", "the same from PBS") \
	X(LSB_JOBID, "LSB_JOBID", "the same from LSF") \
	X(TORCHELASTIC_RUN_ID, "TORCHELASTIC_RUN_ID", \
	  "name of the job, from torchrun; `none` if the user gave it no name") \
	X(PMIX_NAMESPACE, "PMIX_NAMESPACE", "name of the job, from PMIx: Open MPI and others") \
	X(SLURM_STEP_ID, "SLURM_STEP_ID", "number of the job's step, from Slurm")

enum spill_rank {
#define X(id, name, text) SPILL_RANK_##id,
	// clang-format off
	SPILL_RANKS(X)
#undef X
	SPILL_RANKS_COUNT
	// clang-format on
};

struct spill_record_ranks {
	const char *of[SPILL_RANKS_COUNT]; /* NULL: not set */
};

/* The name of the variable. */
const char *spill_rank_variable(enum spill_rank rank);

/* The rank in the whole job, or NULL. */
const char *spill_ranks_rank(const struct spill_record_ranks *ranks);

/* The job's number or name, or NULL. */
const char *spill_ranks_job(const struct spill_record_ranks *ranks);

#endif
