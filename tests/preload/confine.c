/*
 * Runs a program in which system calls fail, as a container's seccomp profile makes them fail:
 * `confine NAME[=ERRNO]... -- PROGRAM [ARGUMENT]...`. ERRNO is 1 (EPERM) unless it is given.
 */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static const struct {
	const char *name;
	unsigned number;
} calls[] = {
    {"bpf", SYS_bpf},
    {"clone3", SYS_clone3},
    {"get_mempolicy", SYS_get_mempolicy},
    {"io_uring_setup", SYS_io_uring_setup},
    {"kcmp", SYS_kcmp},
    {"mbind", SYS_mbind},
    {"membarrier", SYS_membarrier},
    {"mount", SYS_mount},
    {"move_pages", SYS_move_pages},
    {"perf_event_open", SYS_perf_event_open},
    {"pidfd_getfd", SYS_pidfd_getfd},
    {"process_vm_readv", SYS_process_vm_readv},
    {"process_vm_writev", SYS_process_vm_writev},
    {"ptrace", SYS_ptrace},
    {"set_mempolicy", SYS_set_mempolicy},
    {"unshare", SYS_unshare},
    {"userfaultfd", SYS_userfaultfd},
};

#define CALLS (sizeof(calls) / sizeof(calls[0]))

/* Adds the two instructions for a word. False: the word is unknown. */
static int deny(struct sock_filter *code, const char *word)
{
	size_t length = strcspn(word, "=");
	unsigned error = word[length] ? (unsigned)atoi(word + length + 1) : 1;

	for (size_t i = 0; i < CALLS; i++) {
		if (strlen(calls[i].name) != length || strncmp(calls[i].name, word, length) != 0)
			continue;
		code[0] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, calls[i].number, 0, 1);
		code[1] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error);
		return 1;
	}
	fprintf(stderr, "confine: no system call %s\n", word);
	return 0;
}

int main(int argc, char **argv)
{
	struct sock_filter code[2 * CALLS + 2];
	struct sock_fprog program = {1, code};
	int word = 1;

	code[0] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
	for (; word < argc && strcmp(argv[word], "--") != 0; word++, program.len += 2) {
		if ((size_t)word > CALLS || !deny(code + program.len, argv[word]))
			return 64;
	}
	code[program.len++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	if (word + 1 >= argc)
		return 64;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
		perror("confine");
		return 69;
	}
	execvp(argv[word + 1], argv + word + 1);
	perror(argv[word + 1]);
	return 127;
}
