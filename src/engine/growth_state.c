#include "growth_state.h"

#include <pthread.h>

#include "engine.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* SPILL_RANK_GROWING */
static struct spill_growth growth;

bool spill_growth_state_asked(const struct spill_request *request)
{
	const void *site = spill_engine_site(request);
	pthread_mutex_lock(&lock);
	bool grows = site && spill_growth_would(&growth, (uintptr_t)site, request->device, request->bytes);
	pthread_mutex_unlock(&lock);
	return grows;
}

struct spill_growth_answer spill_growth_state_served(struct spill_request *request)
{
	const void *site = spill_engine_site(request);
	if (request->growth.run || !site)
		return request->growth;
	pthread_mutex_lock(&lock);
	request->growth = spill_growth_request(&growth, (uintptr_t)site, request->device, request->bytes);
	pthread_mutex_unlock(&lock);
	return request->growth;
}

void spill_growth_state_fork_prepare(void)
{
	pthread_mutex_lock(&lock);
}

/* The child has no GPU, and asks for nothing of its parent's. */
void spill_growth_state_fork_done(bool child)
{
	if (child)
		growth = (struct spill_growth){0};
	pthread_mutex_unlock(&lock);
}
