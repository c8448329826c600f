/*
 * Guards the process against kernels. A kernel that touches memory out of its device's reach faults
 * on its own thread. As an illegal address on a GPU, the fault breaks the context for good.
 * A fault in a page of managed memory brings the page. Faults of the program itself go to its own
 * handlers.
 */
#include <setjmp.h>
#include <signal.h>
#include <string.h>
#include <ucontext.h>

#include "core_internal.h"

static __thread struct {
	volatile sig_atomic_t armed, passing_on;
	int device;
	sigjmp_buf back;
} guard;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct sigaction before[2]; /* SIGSEGV, SIGBUS */

static void pass_on(int number, siginfo_t *info, void *machine)
{
	const struct sigaction *old = &before[number == SIGBUS];

	if (!guard.passing_on && old->sa_flags & SA_SIGINFO && old->sa_sigaction) {
		guard.passing_on = 1;
		old->sa_sigaction(number, info, machine);
		guard.passing_on = 0;
	} else if (!guard.passing_on && !(old->sa_flags & SA_SIGINFO) && old->sa_handler != SIG_DFL &&
	           old->sa_handler != SIG_IGN) {
		guard.passing_on = 1;
		old->sa_handler(number);
		guard.passing_on = 0;
	} else {
		signal(number, SIG_DFL); /* the access is repeated, and ends the process */
		if (info->si_code <= 0)
			raise(number);
	}
}

static void on_fault(int number, siginfo_t *info, void *machine)
{
	uint64_t address;
	int device;

	if (!guard.armed) {
		pass_on(number, info, machine);
		return;
	}
	if (va_of_alias(info->si_addr, &address, &device)) {
		if (managed_touch(address, device))
			return;
		sim_say("illegal address %#llx on device %d", (unsigned long long)address, device);
	} else {
		sim_say("illegal address: host pointer %p", info->si_addr);
	}
	siglongjmp(guard.back, 1);
}

/* The program may have replaced the handlers since. Check each time: it is cheap. */
static void install_handler(int number)
{
	struct sigaction now,
	    ours = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK};

	if (sigaction(number, NULL, &now) == 0 && now.sa_flags & SA_SIGINFO && now.sa_sigaction == on_fault)
		return;
	pthread_mutex_lock(&lock);
	sigaction(number, &ours, &now);
	if (!(now.sa_flags & SA_SIGINFO) || now.sa_sigaction != on_fault)
		before[number == SIGBUS] = now;
	pthread_mutex_unlock(&lock);
}

void guard_run(struct sim_context *context, work_function run, void *data)
{
	install_handler(SIGSEGV);
	install_handler(SIGBUS);
	guard.device = context->device;
	/* The signal is not blocked in its handler (SA_NODEFER), so there is no mask to restore. */
	if (sigsetjmp(guard.back, 0) == 0) {
		guard.armed = 1;
		run(data);
	} else {
		int none = SIM_OK;

		atomic_compare_exchange_strong(&context->status, &none, SIM_ILLEGAL_ADDRESS);
	}
	guard.armed = 0;
}

void guard_off(void)
{
	guard.armed = 0;
}

void *guard_reach(uint64_t address)
{
	if (va_contains(address))
		return va_alias(address, guard.device);
	void *own = registered(address);
	return own ? own : (void *)va_poison();
}

void *guard_range(uint64_t address, uint64_t bytes, uint64_t times)
{
	void *start = guard_reach(address);

	time_use(address, bytes, times, guard.device);
	pages_ready(start, bytes, true);
	return start;
}

int guard_device(void)
{
	return guard.device;
}
