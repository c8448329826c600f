#include "process_ranks.h"

#include <stdlib.h>

struct spill_record_ranks spill_process_ranks(void)
{
	struct spill_record_ranks ranks;

	for (unsigned i = 0; i < SPILL_RANKS_COUNT; i++)
		ranks.of[i] = secure_getenv(spill_rank_variable((enum spill_rank)i));
	return ranks;
}
