/*
 * A program whose 64 threads allocate and free while the process does what processes do. It finds the driver by dlopen.
 *
 *	crowd children ROUNDS   every kind of child, and threads that end or are cancelled, ROUNDS times
 *	crowd exit|_exit|quick_exit|return   ends with status 4 while the threads allocate
 *	crowd reopen            one thread: closes the driver and opens it again, twice
 *	crowd chroot FOLDER     one thread: makes the folder its root between its calls
 *	crowd unshare           one thread: leaves its mounts, names and pids behind, and forks
 *	crowd no-room           one thread: gets no more address space for a while
 *
 * One thread makes five allocations of 4 MiB at a time. Prints a line a call, or sums. Exit status: 0; 1 a call failed that may
 * not; 4 as above; 64 usage. An alarm ends it if anything waits for ever.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cuda_api.h"

#define THREADS 64
#define COUNT 5
#define BYTES ((size_t)4 << 20)

static __typeof__(&cuInit) init;
static __typeof__(&cuDevicePrimaryCtxRetain) retain;
static __typeof__(&cuDevicePrimaryCtxRelease_v2) release;
static __typeof__(&cuCtxSetCurrent) set_current;
static __typeof__(&cuMemAlloc_v2) allocate;
static __typeof__(&cuMemFree_v2) give_back;

static void *driver;
static CUcontext context;

static bool open_driver(void)
{
	driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
	if (!driver)
		return false;
	*(void **)&init = dlsym(driver, "cuInit");
	*(void **)&retain = dlsym(driver, "cuDevicePrimaryCtxRetain");
	*(void **)&release = dlsym(driver, "cuDevicePrimaryCtxRelease_v2");
	*(void **)&set_current = dlsym(driver, "cuCtxSetCurrent");
	*(void **)&allocate = dlsym(driver, "cuMemAlloc_v2");
	*(void **)&give_back = dlsym(driver, "cuMemFree_v2");
	return !init(0) && !retain(&context, 0) && !set_current(context);
}

/* -- many threads ------------------------------------------------------------------------------ */

static atomic_bool stop;
static atomic_uint begun, failed;

static void *churn(void *unused)
{
	CUdeviceptr address;

	set_current(context);
	for (size_t bytes = 4096; !atomic_load(&stop); bytes = bytes > BYTES / 16 ? 4096 : bytes * 2) {
		if (allocate(&address, bytes) || give_back(address))
			atomic_fetch_add(&failed, 1);
		if (bytes == 4096)
			atomic_fetch_add(&begun, 1);
		pthread_testcancel();
	}
	return unused;
}

static void *churn_a_while(void *unused)
{
	CUdeviceptr address;

	set_current(context);
	for (int i = 0; i < 20; i++)
		if (allocate(&address, 4096) || give_back(address))
			atomic_fetch_add(&failed, 1);
	pthread_exit(unused);
}

static bool start_threads(pthread_t threads[THREADS])
{
	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, churn, NULL))
			return false;
	while (atomic_load(&begun) < THREADS)
		sched_yield();
	return true;
}

/* In a child of a process with a GPU, whose calls are refused and return. */
static int refused(void)
{
	CUdeviceptr address;

	alarm(60);
	return allocate(&address, 4096) ? 0 : 1;
}

static char *const true_arguments[] = {(char *)"true", NULL};
extern char **environ;

static pid_t forked(void)
{
	pid_t child = fork();

	if (child == 0)
		_exit(refused());
	return child;
}

static pid_t forked_and_exits(void)
{
	pid_t child = fork();

	if (child == 0)
		exit(refused());
	return child;
}

static pid_t vforked(void)
{
	pid_t child = vfork(); /* NOLINT: its ways are tested */

	if (child == 0) {
		execve("/bin/true", true_arguments, environ);
		_exit(127);
	}
	return child;
}

static pid_t spawned(void)
{
	pid_t child = -1;

	return posix_spawn(&child, "/bin/true", NULL, NULL, true_arguments, environ) ? -1 : child;
}

/* No handler of a fork runs, whatever locks are held. */
static pid_t cloned(void)
{
	pid_t child = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);

	if (child == 0) {
		execve("/bin/true", true_arguments, environ);
		_exit(127);
	}
	return child;
}

static pid_t cloned_and_exits(void)
{
	pid_t child = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);

	if (child == 0)
		_exit(0);
	return child;
}

static int children(long rounds)
{
	static pid_t (*const kinds[])(void) = {forked,  forked_and_exits, vforked,
	                                       spawned, cloned,           cloned_and_exits};
	pthread_t threads[THREADS], one;
	unsigned good = 0, cancelled = 0;

	if (!start_threads(threads))
		return 1;
	for (long i = 0; i < rounds; i++) {
		for (size_t kind = 0; kind < sizeof(kinds) / sizeof(kinds[0]); kind++) {
			int status = -1;

			waitpid(kinds[kind](), &status, 0);
			good += status == 0;
			if (status)
				printf("child %zu: status %#x\n", kind, status);
		}
		void *result = NULL;
		if (pthread_create(&one, NULL, churn_a_while, NULL) || pthread_join(one, NULL) ||
		    pthread_create(&one, NULL, churn, NULL) || pthread_cancel(one) ||
		    pthread_join(one, &result))
			return 1;
		cancelled += result == PTHREAD_CANCELED;
	}
	atomic_store(&stop, true);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	printf("children %u, cancelled %u, failed calls %u\n", good, cancelled, atomic_load(&failed));
	return good != rounds * sizeof(kinds) / sizeof(kinds[0]) || atomic_load(&failed);
}

static int end_among_threads(const char *how)
{
	pthread_t threads[THREADS];

	if (!start_threads(threads))
		return 1;
	if (!strcmp(how, "exit"))
		exit(4);
	if (!strcmp(how, "_exit"))
		_exit(4);
	if (!strcmp(how, "quick_exit"))
		quick_exit(4);
	return 4;
}

/* -- one thread -------------------------------------------------------------------------------- */

static bool take_and_give(void)
{
	CUdeviceptr address[COUNT];
	bool good = true;

	for (int i = 0; i < COUNT; i++) {
		CUresult result = allocate(&address[i], BYTES);

		printf("alloc %d\n", result);
		good = good && !result;
		if (result)
			address[i] = 0;
	}
	for (int i = 0; i < COUNT; i++)
		if (address[i])
			printf("free %d\n", give_back(address[i]));
	fflush(stdout);
	return good;
}

static int reopen(void)
{
	for (int i = 0; i < 3; i++) {
		if (i > 0 && !open_driver())
			return 1;
		take_and_give();
		printf("release %d\n", release(0));
		printf("close %d\n", dlclose(driver));
	}
	return 0;
}

static int change_root(const char *folder)
{
	take_and_give();
	if (chroot(folder) || chdir("/"))
		return 1;
	take_and_give();
	return 0;
}

static int leave_namespaces(void)
{
	int status = -1;

	take_and_give();
	if (unshare(CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS))
		return 1;
	take_and_give();
	pid_t child = fork();
	if (child == 0) {
		printf("pid %d\n", (int)getpid());
		fflush(stdout);
		_exit(refused());
	}
	waitpid(child, &status, 0);
	printf("status %d\n", status);
	take_and_give();
	return 0;
}

/* The kernel's limit of addresses is what the process has, and `more`. */
static void limit_addresses(size_t more)
{
	struct rlimit limit;
	char text[64] = "";
	int fd = open("/proc/self/statm", O_RDONLY);

	if (read(fd, text, sizeof(text) - 1) < 0 || getrlimit(RLIMIT_AS, &limit))
		_exit(1);
	close(fd);
	limit.rlim_cur = more ? strtoull(text, NULL, 10) * (size_t)getpagesize() + more : limit.rlim_max;
	setrlimit(RLIMIT_AS, &limit);
}

static int no_room(void)
{
	CUdeviceptr address;

	take_and_give();
	for (size_t more = 1; more <= 16 << 20; more *= 4) {
		limit_addresses(more);
		for (int i = 0; i < COUNT; i++)
			if (!allocate(&address, BYTES) && give_back(address))
				return 1;
		limit_addresses(0);
	}
	take_and_give();
	return 0;
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "";

	alarm(120);
	if (!open_driver())
		return 1;
	if (!strcmp(how, "children") && argc > 2)
		return children(atol(argv[2]));
	if (!strcmp(how, "reopen"))
		return reopen();
	if (!strcmp(how, "chroot") && argc > 2)
		return change_root(argv[2]);
	if (!strcmp(how, "unshare"))
		return leave_namespaces();
	if (!strcmp(how, "no-room"))
		return no_room();
	return strstr("exit _exit quick_exit return", how) && *how ? end_among_threads(how) : 64;
}
