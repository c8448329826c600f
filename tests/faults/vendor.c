/* libspill's calls of the simulated driver, which asks sim_test_fault at the begin of each function. */
#include "faults.h"

#include <pthread.h>
#include <string.h>

#define FUNCTIONS 256

static struct faults_call calls[FUNCTIONS];
static unsigned call_count;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* `name` lives as long as the driver. */
static struct faults_call *find(const char *name)
{
	unsigned i = 0;

	pthread_mutex_lock(&lock);
	while (i < call_count && strcmp(calls[i].name, name) != 0)
		i++;
	if (i == FUNCTIONS)
		faults_die("too many functions:", name);
	if (i == call_count) {
		calls[i].name = name;
		calls[i].vendor = true;
		call_count++;
	}
	pthread_mutex_unlock(&lock);
	return &calls[i];
}

__attribute__((visibility("default"))) bool sim_test_fault(const char *symbol, const void *caller, int *code);
bool sim_test_fault(const char *symbol, const void *caller, int *code)
{
	return faults_own(symbol, caller) && faults_now(find(symbol), caller, code);
}

__attribute__((visibility("default"))) void sim_test_strict(const char *symbol, const void *caller);
void sim_test_strict(const char *symbol, const void *caller)
{
	if (faults_own(symbol, caller))
		faults_note_strict(find(symbol), caller);
}
