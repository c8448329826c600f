/*
 * A program with children that `spill top` must not take for it. Prints a line "NAME PID" for each
 * process, and the output of `spill top --once --json` at three moments.
 *
 *	top_fork SPILL [closes]
 *
 * closes: no children; all descriptors but 0 to 2 are closed between two looks.
 */
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cuda_api.h"

#define BYTES ((size_t)4 << 20)

extern char **environ;
static char *spill;

static void start(void)
{
	CUcontext context;

	if (cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context))
		exit(1);
}

static CUdeviceptr take(void)
{
	CUdeviceptr address = 0;

	return cuMemAlloc_v2(&address, BYTES) ? 0 : address;
}

static void wait_for(pid_t child)
{
	int status;

	if (child < 0 || waitpid(child, &status, 0) != child || status)
		exit(1);
}

static void say(const char *name, pid_t pid)
{
	printf("%s %d\n", name, (int)pid);
	fflush(stdout);
}

static void look(void)
{
	char *arguments[] = {spill, "top", "--once", "--json", NULL};
	pid_t child;

	if (posix_spawn(&child, spill, NULL, NULL, arguments, environ))
		exit(1);
	wait_for(child);
}

/* It has a GPU of its own, since the parent has none yet. */
static void fork_early(void)
{
	pid_t child = fork();

	if (child == 0) {
		start();
		if (!take())
			_exit(1);
		say("child", getpid());
		look();
		_exit(0);
	}
	wait_for(child);
}

/* What they ask of the GPU is refused, and is not the parent's. */
static void fork_late(void)
{
	pid_t child = fork();

	if (child == 0) {
		take();
		say("late", getpid());
		look();
		_exit(0);
	}
	wait_for(child);
}

static void clone_bare(void)
{
	pid_t child = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, 0);

	if (child == 0) {
		take();
		say("bare", (pid_t)syscall(SYS_getpid));
		look();
		_exit(0);
	}
	wait_for(child);
}

int main(int argc, char **argv)
{
	CUdeviceptr address[2];

	spill = argv[1];
	if (argc == 2)
		fork_early();
	start();
	say("parent", getpid());
	address[0] = take();
	address[1] = take();
	if (argc == 2) {
		fork_late();
		clone_bare();
	} else {
		look();
		closefrom(3);
		look();
	}
	return !address[0] || !address[1] || cuMemFree_v2(address[0]) || cuMemFree_v2(address[1]);
}
