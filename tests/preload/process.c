/*
 * A program on the CUDA driver that forks, or ends, in every way there is.
 *
 *	process fork-fresh | fork-early | fork-after | fork-threads
 *	process busy-MICROSECONDS  allocates and frees until a signal handler calls _exit after that time
 *	process forks-COUNT        COUNT children one after the other; then a chain of COUNT descendants
 *	process loader             closes a library, and forks, in the loader; another thread waits for it
 *	process exit | return | _exit | _Exit | quick_exit | abort | assert | terminate | thread-exit
 *	process signal | segv | kill | exec
 *
 * Before it ends, it makes five allocations of 4 MiB. Prints one line a call, without addresses.
 */
#include <assert.h>
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cuda_api.h"

#define COUNT 5
#define BYTES ((size_t)4 << 20)
#define FORKS 200

static CUcontext context;

static CUresult say(const char *who, const char *call, CUresult result)
{
	const char *name = "?";

	cuGetErrorName(result, &name);
	printf("%s %s %s\n", who, call, name);
	fflush(stdout);
	return result;
}

static CUresult start(void)
{
	CUresult result = cuInit(0);

	if (!result)
		result = cuDevicePrimaryCtxRetain(&context, 0);
	return result ? result : cuCtxSetCurrent(context);
}

static void take(const char *who, CUdeviceptr *address)
{
	for (int i = 0; i < COUNT; i++)
		say(who, "alloc", cuMemAlloc_v2(&address[i], BYTES));
}

static void give(const char *who, CUdeviceptr *address)
{
	for (int i = 0; i < COUNT; i++)
		say(who, "free", cuMemFree_v2(address[i]));
}

static int wait_for(pid_t child)
{
	int status = -1;

	waitpid(child, &status, 0);
	return status;
}

/* Children before the parent has touched the GPU are programs like any other. */
static int fork_fresh(void)
{
	for (int i = 0; i < 2; i++) {
		CUdeviceptr address[COUNT];
		pid_t child = fork();

		if (child == 0) {
			alarm(20);
			say("child", "start", start());
			take("child", address);
			give("child", address);
			exit(0);
		}
		printf("status %d\n", wait_for(child));
		fflush(stdout); /* or the next child prints it again */
	}
	return 0;
}

/* A child of a process that uses the GPU has none; the vendor says so. */
static int fork_after(void)
{
	CUdeviceptr address[COUNT], mine;
	size_t free, total;

	say("parent", "start", start());
	take("parent", address);
	pid_t child = fork();
	if (child == 0) {
		say("child", "info", cuMemGetInfo_v2(&free, &total));
		say("child", "alloc", cuMemAlloc_v2(&mine, BYTES));
		say("child", "free", cuMemFree_v2(address[0]));
		say("child", "start", start());
		exit(0);
	}
	printf("status %d\n", wait_for(child));
	give("parent", address);
	take("parent", address);
	give("parent", address);
	return 0;
}

static atomic_bool stop;

static void *churn(void *unused)
{
	CUdeviceptr address;
	unsigned *bad = calloc(1, sizeof(*bad));

	cuCtxSetCurrent(context);
	for (size_t bytes = 4096; !atomic_load(&stop); bytes = bytes > BYTES ? 4096 : bytes * 2)
		*bad += cuMemAlloc_v2(&address, bytes) || cuMemFree_v2(address);
	return bad;
}

/* Whatever lock a thread holds at the fork, the child's calls return. The alarm ends one that does not. */
static int fork_threads(void)
{
	pthread_t threads[4];
	CUdeviceptr address[COUNT];
	unsigned bad = 0, ended = 0;

	say("parent", "start", start());
	take("parent", address);
	for (int i = 0; i < 4; i++)
		if (pthread_create(&threads[i], NULL, churn, NULL))
			return 1;
	for (int i = 0; i < FORKS; i++) {
		pid_t child = fork();

		if (child == 0) {
			CUdeviceptr mine;

			alarm(20);
			bool refused = cuMemAlloc_v2(&mine, BYTES) && cuMemsetD8_v2(address[0], 0, 1) &&
			               cuMemFree_v2(address[0]);
			if (i % 2)
				exit(refused ? 0 : 1);
			_exit(refused ? 0 : 1);
		}
		ended += wait_for(child) == 0;
	}
	atomic_store(&stop, true);
	for (int i = 0; i < 4; i++) {
		void *result;

		pthread_join(threads[i], &result);
		bad += *(unsigned *)result;
		free(result);
	}
	give("parent", address);
	printf("children %u of %d, failed calls %u\n", ended, FORKS, bad);
	return 0;
}

/* Counts this process's descriptors, and its mapped pages. */
static void has(int *descriptors, long *pages)
{
	DIR *all = opendir("/proc/self/fd");
	char text[64] = "";
	int fd = open("/proc/self/statm", O_RDONLY);

	*descriptors = 0;
	while (all && readdir(all))
		++*descriptors;
	if (all)
		closedir(all);
	*pages = fd >= 0 && read(fd, text, sizeof(text) - 1) > 0 ? atol(text) : -1;
	close(fd);
}

static void compare(const char *who, int descriptors, long pages)
{
	int now;
	long mapped;

	has(&now, &mapped);
	printf("%s: descriptors %+d, pages %+ld\n", who, now - descriptors, mapped - pages);
	fflush(stdout);
}

static int refused(void)
{
	CUdeviceptr mine;

	return cuMemAlloc_v2(&mine, BYTES) ? 0 : 1;
}

/*
 * A child of a process with a GPU has none; each asks once. pre: this process gets the children of
 * children that have ended (PR_SET_CHILD_SUBREAPER, which qemu-user refuses)
 */
static int forks(long count)
{
	CUdeviceptr address[COUNT];
	long ended = 0, pages;
	int descriptors, status;

	say("parent", "start", start());
	take("parent", address);
	has(&descriptors, &pages);
	for (long i = 0; i < count; i++) {
		pid_t child = fork();

		if (child == 0)
			_exit(refused());
		ended += wait_for(child) == 0;
	}
	compare("parent", descriptors, pages);
	for (long i = 0; i < count; i++) {
		if (fork() > 0) {
			if (i > 0)
				_exit(refused());
			while (wait(&status) > 0 || errno == EINTR)
				ended += status == 0;
			break;
		}
		if (i == 0) { /* the first one has closed its parent's; later ones have the same */
			compare("child", descriptors, pages);
			has(&descriptors, &pages);
		}
		if (i + 1 == count) {
			compare("last", descriptors, pages);
			_exit(refused());
		}
	}
	give("parent", address);
	printf("children %ld\n", ended);
	return 0;
}

static void *library;
static _Atomic pid_t closer;
static atomic_bool within;

static void *close_one(void *unused)
{
	atomic_store(&closer, gettid());
	while (!atomic_load(&within))
		;
	dlclose(library);
	return NULL;
}

/* 0: it has ended. */
static char state_of(pid_t thread)
{
	char path[64], text[128] = "";
	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", (int)thread);
	int fd = open(path, O_RDONLY);

	if (fd < 0)
		return 0;
	ssize_t got = read(fd, text, sizeof(text) - 1);
	close(fd);
	char *name_end = got > 0 ? strrchr(text, ')') : NULL;
	return name_end ? name_end[2] : 0;
}

/* It holds the loader's lock; with the other thread asleep or gone nothing here waits for it. */
static int in_loader(struct dl_phdr_info *info, size_t size, void *unused)
{
	char state = 'R';

	atomic_store(&within, true);
	while (state && state != 'S' && state != 'Z' && state != 'X')
		state = state_of(atomic_load(&closer));
	printf("close %d\n", dlclose(library));
	fflush(stdout);
	pid_t child = fork();
	if (child == 0)
		_exit(0);
	printf("status %d\n", wait_for(child));
	return 1;
}

static int loader(void)
{
	pthread_t thread;

	alarm(20);
	for (int i = 0; i < 3; i++)
		library = dlopen("libm.so.6", RTLD_NOW);
	say("", "start", start());
	if (!library || pthread_create(&thread, NULL, close_one, NULL))
		return 1;
	while (!atomic_load(&closer))
		;
	dl_iterate_phdr(in_loader, NULL);
	return pthread_join(thread, NULL);
}

/* An exception that nobody catches, thrown as a C++ compiler does: std::terminate, and from there abort. */
static void terminate(void)
{
	void *library = dlopen("libstdc++.so.6", RTLD_NOW);
	void *(*allocate)(size_t);
	void (*throw)(void *, void *, void (*)(void *));

	if (!library)
		_exit(77);
	*(void **)&allocate = dlsym(library, "__cxa_allocate_exception");
	*(void **)&throw = dlsym(library, "__cxa_throw");
	throw(allocate(sizeof(int)), dlsym(library, "_ZTIi"), NULL);
}

static void leave(int number)
{
	_exit(7);
}

static void *exit_in_thread(void *unused)
{
	exit(9);
}

static int busy(long microseconds)
{
	struct itimerval once = {.it_value.tv_usec = microseconds};

	if (start())
		return 1;
	signal(SIGALRM, leave);
	setitimer(ITIMER_REAL, &once, NULL);
	for (size_t bytes = 4096;; bytes = bytes > BYTES ? 4096 : bytes * 4) {
		CUdeviceptr address;

		if (cuMemAlloc_v2(&address, bytes) || cuMemFree_v2(address))
			return 1;
	}
}

static int end(const char *how, char **argv)
{
	pthread_t thread;

	if (!strcmp(how, "return"))
		return 3;
	if (!strcmp(how, "exit"))
		exit(4);
	if (!strcmp(how, "_exit"))
		_exit(5);
	if (!strcmp(how, "_Exit"))
		_Exit(6);
	if (!strcmp(how, "quick_exit"))
		quick_exit(8);
	if (!strcmp(how, "abort"))
		abort();
	if (!strcmp(how, "assert"))
		assert(!"of the program");
	if (!strcmp(how, "terminate"))
		terminate();
	if (!strcmp(how, "thread-exit") && !pthread_create(&thread, NULL, exit_in_thread, NULL))
		pthread_join(thread, NULL);
	if (!strcmp(how, "signal")) {
		signal(SIGUSR1, leave);
		raise(SIGUSR1);
	}
	if (!strcmp(how, "segv"))
		raise(SIGSEGV);
	if (!strcmp(how, "kill"))
		kill(getpid(), SIGKILL);
	if (!strcmp(how, "exec"))
		execl(argv[0], argv[0], "return", (char *)NULL);
	return 64;
}

int main(int argc, char **argv)
{
	CUdeviceptr address[COUNT];

	if (argc != 2)
		return 64;
	if (!strcmp(argv[1], "fork-early")) /* a hooked call before the fork, but no GPU yet */
		say("parent", "alloc", cuMemAlloc_v2(address, BYTES));
	if (!strcmp(argv[1], "fork-fresh") || !strcmp(argv[1], "fork-early"))
		return fork_fresh();
	if (!strcmp(argv[1], "fork-after"))
		return fork_after();
	if (!strcmp(argv[1], "fork-threads"))
		return fork_threads();
	if (!strcmp(argv[1], "loader"))
		return loader();
	if (!strncmp(argv[1], "forks-", 6))
		return forks(atol(argv[1] + 6));
	if (!strncmp(argv[1], "busy-", 5))
		return busy(atol(argv[1] + 5));
	if (say("", "start", start()))
		return 1;
	take("", address);
	return end(argv[1], argv);
}
