#include "process.h"

#include <stdatomic.h>

__thread struct spill_thread spill_thread __attribute__((tls_model("initial-exec")));

static const struct spill_policy before_start;
static const struct spill_policy *_Atomic in_force = &before_start;

const struct spill_policy *spill_process_policy(void)
{
	return atomic_load_explicit(&in_force, memory_order_acquire);
}

void spill_process_use_policy(const struct spill_policy *policy)
{
	atomic_store_explicit(&in_force, policy, memory_order_release);
}
