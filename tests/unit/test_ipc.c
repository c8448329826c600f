/*
 * Handles of memory that is made of chunks: exporter and importer in one process, which the vendor of
 * the tests allows. Two processes: tests/preload/processes.c.
 */
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define SETUP setup
#define KEEPS_DESCRIPTORS /* the socket of the exporter */
#include "unit.h"
#include "account.h"
#include "fake_vendor.h"
#include "ipc.h"
#include "ledger.h"
#include "shared_chunks.h"
#include "unpark.h"

#define CHUNK (4 * FAKE_SMALL_UNIT)
#define BYTES (3 * CHUNK - 100)

static struct spill_policy policy;
static char one_context, other_context;

static int setup(void **state)
{
	spill_policy_default(&policy);
	policy.movable_chunk = (struct spill_amount){SPILL_AMOUNT_BYTES, CHUNK};
	fake_vendor_reset_mover(64 * CHUNK);
	fake_vendor.failure = FAKE_INVALID;
	spill_account_reset();
	return 0;
}

static struct spill_placement *make(void)
{
	const char *error;
	const struct spill_place_request wanted = {&fake_vendor_backend, &policy, 0, &policy, BYTES, 0,
	                                           SPILL_UNLIMITED};
	struct spill_placement *made = spill_place_movable.make(&wanted, &error);
	assert_non_null(made);
	spill_unpark_pin(spill_chunked_of(made));
	return made;
}

static int open_handle(const void *handle, void *context, uint64_t *ptr)
{
	return spill_ipc_open(&fake_vendor_backend, 0, context, handle, ptr);
}

static void close_handle(uint64_t ptr)
{
	struct spill_ipc_range range;
	assert_true(spill_ipc_close(ptr));
	struct spill_ipc_import *unused = spill_ipc_take_unused(&range);
	assert_non_null(unused);
	assert_int_equal(range.ptr, ptr);
	spill_ipc_unmap(unused);
}

static void nothing_is_held(void)
{
	assert_int_equal(fake_vendor_alive(), 0);
	assert_int_equal(fake_vendor.broken, 0);
	assert_int_equal(fake_vendor.device, 0);
}

TEST(all_chunks_are_mapped_in_order)
{
	char handle[SPILL_IPC_HANDLE_BYTES], again[SPILL_IPC_HANDLE_BYTES];
	struct spill_placement *made = make();
	uint64_t ptr;
	assert_true(spill_ipc_export(made, BYTES, handle));
	assert_true(spill_ipc_export(made, BYTES, again));
	assert_memory_equal(handle, again, sizeof(handle));
	assert_true(spill_ipc_is(handle) && spill_ipc_is_own(handle));
	for (unsigned i = 0; i < 3; i++)
		fake_vendor_bytes(made->ptr + i * CHUNK, 0)[7] = (unsigned char)(i + 1);
	assert_int_equal(open_handle(handle, &one_context, &ptr), 0);
	assert_true(ptr != made->ptr);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(fake_vendor_bytes(ptr + i * CHUNK, 0)[7], i + 1);
	close_handle(ptr);
	spill_placement_release(made, false);
	nothing_is_held();
}

static unsigned open_descriptors(void)
{
	unsigned count = 0;
	DIR *folder = opendir("/proc/self/fd");
	assert_non_null(folder);
	while (readdir(folder))
		count++;
	closedir(folder);
	return count;
}

/* Chunks come by descriptors, which both sides close. The exporter may be closing those of the last open. */
TEST(opens_keep_no_descriptors)
{
	char handle[SPILL_IPC_HANDLE_BYTES];
	struct spill_placement *made = make();
	unsigned before = open_descriptors();
	uint64_t ptr;
	assert_true(spill_ipc_export(made, BYTES, handle));
	for (unsigned i = 0; i < 40; i++) {
		assert_int_equal(open_handle(handle, &one_context, &ptr), 0);
		close_handle(ptr);
	}
	assert_in_range(open_descriptors(), 0, before + 20);
	spill_placement_release(made, false);
	nothing_is_held();
}

/* By contexts: each has a mapping of its own, which counts. */
TEST(opens_are_counted)
{
	char handle[SPILL_IPC_HANDLE_BYTES];
	struct spill_placement *made = make();
	struct spill_ipc_range range;
	uint64_t first, second, third;
	assert_true(spill_ipc_export(made, BYTES, handle));
	assert_int_equal(open_handle(handle, &one_context, &first), 0);
	assert_int_equal(open_handle(handle, &one_context, &second), 0);
	assert_int_equal(open_handle(handle, &other_context, &third), 0);
	assert_true(first == second && first != third);
	assert_true(spill_ipc_at(first + BYTES - 1, &range));
	assert_true(range.ptr == first && range.bytes == BYTES && range.context == &one_context);
	assert_false(spill_ipc_at(first + BYTES, &range));
	assert_false(spill_ipc_close(first + 1));
	assert_true(spill_ipc_close(first));
	assert_null(spill_ipc_take_unused(&range));
	/* Who cannot wait leaves it mapped, and it can be opened again. */
	assert_true(spill_ipc_close(first));
	assert_false(spill_ipc_close(first));
	assert_non_null(fake_vendor_bytes(first, 0));
	assert_int_equal(open_handle(handle, &one_context, &second), 0);
	assert_true(first == second);
	close_handle(first);
	close_handle(third);
	/* Each free asks. While nothing is open it takes no lock. */
	unsigned taken = locks_taken();
	assert_false(spill_ipc_at(first, &range));
	assert_false(spill_ipc_close(first));
	assert_null(spill_ipc_take_unused(&range));
	assert_int_equal(locks_taken(), taken);
	spill_placement_release(made, false);
	nothing_is_held();
}

/* The importer keeps the memory; nobody else can open it any more. */
TEST(the_exporter_frees)
{
	char handle[SPILL_IPC_HANDLE_BYTES];
	struct spill_placement *made = make();
	uint64_t ptr, none;
	assert_true(spill_ipc_export(made, BYTES, handle));
	assert_int_equal(open_handle(handle, &one_context, &ptr), 0);
	fake_vendor_bytes(ptr + CHUNK, 0)[0] = 9;
	spill_placement_release(made, false);
	assert_int_equal(fake_vendor_bytes(ptr + CHUNK, 0)[0], 9);
	assert_int_equal(open_handle(handle, &other_context, &none), FAKE_INVALID);
	close_handle(ptr);
	nothing_is_held();
}

TEST(handles_that_nobody_made)
{
	struct spill_ipc_handle handle = {.magic = SPILL_IPC_MAGIC, .bytes = BYTES};
	char made[SPILL_IPC_HANDLE_BYTES];
	struct spill_placement *placement = make();
	uint64_t ptr;
	assert_false(spill_ipc_is(&(struct spill_ipc_handle){.magic = 1}));
	assert_false(spill_ipc_is_own(&handle));
	assert_int_equal(open_handle(&handle, &one_context, &ptr), FAKE_INVALID);
	/* More bytes than the chunks have, another number, another name. */
	assert_true(spill_ipc_export(placement, BYTES, made));
	for (unsigned i = 0; i < 3; i++) {
		memcpy(&handle, made, sizeof(handle));
		handle.bytes += i == 0 ? 2 * CHUNK : 0;
		handle.number += i == 1;
		handle.name[3] ^= i == 2;
		assert_int_equal(open_handle(&handle, &one_context, &ptr), FAKE_INVALID);
	}
	spill_placement_release(placement, false);
	nothing_is_held();
}

TEST(a_context_that_ends_closes_what_it_opened)
{
	char handle[SPILL_IPC_HANDLE_BYTES];
	struct spill_placement *made = make();
	struct spill_ipc_range range;
	uint64_t mine, others;
	assert_true(spill_ipc_export(made, BYTES, handle));
	assert_int_equal(open_handle(handle, &one_context, &mine), 0);
	assert_int_equal(open_handle(handle, &other_context, &others), 0);
	struct spill_context_end end = spill_context_end_begin(&fake_vendor_backend, 0, &one_context);
	spill_ipc_context_ended(&end);
	spill_context_end_finish(&end, false);
	assert_false(spill_ipc_at(mine, &range));
	assert_true(spill_ipc_at(others, &range));
	close_handle(others);
	spill_placement_release(made, false);
	nothing_is_held();
}

/* Each call of the vendor, on either side. What is refused leaves nothing, and works later. */
TEST(a_failing_call_leaves_nothing)
{
	char handle[SPILL_IPC_HANDLE_BYTES];
	struct spill_placement *made = make();
	unsigned alive = fake_vendor_alive(), i = 1;
	uint64_t ptr;
	do
		fake_vendor_fail(i, i + 1);
	while (i++ < 100 && !spill_ipc_export(made, BYTES, handle) && fake_vendor_alive() == alive);
	assert_int_equal(i - 2, 2 * 3); /* a handle and a descriptor of each chunk */
	alive = fake_vendor_alive();
	for (i = 1; i < 100; i++) {
		fake_vendor_fail(i, i + 1);
		if (!open_handle(handle, &one_context, &ptr))
			break;
		assert_int_equal(fake_vendor_alive(), alive);
	}
	/* Of each chunk a descriptor, a handle and a mapping; the range and access. */
	assert_int_equal(i - 1, 3 * 3 + 2);
	fake_vendor_fail(0, 0);
	close_handle(ptr);
	spill_placement_release(made, false);
	nothing_is_held();
}

TEST(what_cannot_be_handed_on)
{
	char handle[SPILL_IPC_HANDLE_BYTES];
	struct spill_placement *made = make();
	fake_vendor.no_descriptors = true;
	assert_false(spill_ipc_export(made, BYTES, handle));
	spill_placement_release(made, false);
	nothing_is_held();
}

TEST(what_it_says_of_memory)
{
	static const struct {
		enum spill_place place;
		uint64_t bytes, host;
		bool ordered, none, serves;
	} cases[] = {
	    {SPILL_PLACE_MOVABLE, BYTES, 0, .serves = true},
	    {SPILL_PLACE_SPLIT, 2 << 20, 1 << 20, .serves = true},
	    {SPILL_PLACE_MOVABLE, SPILL_SHARED_CHUNKS_LARGEST, 0},
	    {SPILL_PLACE_MOVABLE, 2 << 20, 0, .ordered = true},
	    {SPILL_PLACE_HOST, 2 << 20, 2 << 20},
	    {SPILL_PLACE_SPLIT, 2 << 20, 1 << 20, .none = true},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct spill_allocation allocation = {.backend = &fake_vendor_backend,
		                                      .place = cases[i].place,
		                                      .bytes = cases[i].bytes +
		                                               (2 << 20) * (cases[i].bytes == BYTES),
		                                      .held.host = cases[i].host,
		                                      .ordered = cases[i].ordered};
		fake_vendor.no_descriptors = cases[i].none;
		assert_int_equal(spill_ipc_serves(&allocation), cases[i].serves);
	}
}

/* A process that answers with anything. */
static struct {
	struct spill_ipc_answer answer;
	unsigned from, until; /* the answers from this one on; until 0: to the last */
	unsigned asked;
	int descriptor;
	int listener;
} liar;

static void *lie(void *placement)
{
	int socket = spill_fd_pass_accept(liar.listener), descriptor;
	struct spill_ipc_question question;
	uint64_t handle;
	for (unsigned i = 0; spill_fd_pass_receive(socket, &question, sizeof(question), &descriptor); i++) {
		struct spill_ipc_answer answer = {3, CHUNK};
		fake_vendor_retain(&handle, ((struct spill_placement *)placement)->ptr);
		fake_vendor_backend.physical->to_descriptor(handle, &descriptor);
		liar.asked++;
		if (i >= liar.from && (!liar.until || i < liar.until))
			answer = liar.answer;
		spill_fd_pass_send(socket, &answer, sizeof(answer),
		                   i < liar.from || !liar.descriptor ? descriptor
		                   : liar.descriptor > 0             ? liar.descriptor
		                                                     : -1);
		close(descriptor);
		fake_vendor_backend.physical->release(handle);
	}
	close(socket);
	return NULL;
}

TEST(a_process_that_answers_wrongly)
{
	struct spill_placement *made = make();
	struct spill_ipc_handle handle = {
	    .magic = SPILL_IPC_MAGIC, .name = "one who lies", .number = 1, .bytes = BYTES};
	int foreign = open("/dev/null", O_RDONLY | O_CLOEXEC);
	const struct {
		struct spill_ipc_answer answer;
		unsigned from;
		int descriptor; /* 0: the right one; -1: none */
		bool good;
	} cases[] = {
	    {{3, CHUNK}, 3, 0, true},   {{0, CHUNK}, 0, 0, false},
	    {{4, CHUNK}, 1, 0, false},  {{(1ull << 60) + 1, CHUNK}, 0, 0, false},
	    {{3, 0}, 0, 0, false},      {{3, UINT64_MAX}, 1, 0, false},
	    {{3, CHUNK}, 1, -1, false}, {{3, CHUNK}, 2, foreign, false},
	};
	unsigned alive = fake_vendor_alive();
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		pthread_t thread;
		uint64_t ptr;
		liar.answer = cases[i].answer;
		liar.from = cases[i].from;
		liar.descriptor = cases[i].descriptor;
		liar.listener = spill_fd_pass_listen(handle.name);
		assert_int_equal(pthread_create(&thread, NULL, lie, made), 0);
		int result = open_handle(&handle, &one_context, &ptr);
		pthread_join(thread, NULL);
		close(liar.listener);
		assert_int_equal(result, cases[i].good ? 0 : FAKE_INVALID);
		if (cases[i].good)
			close_handle(ptr);
		assert_int_equal(fake_vendor_alive(), alive);
	}
	close(foreign);
	/* An address in nothing could not be closed, and more than all chunks cannot be mapped. */
	static const uint64_t sizes[] = {0, 3 * CHUNK, 3 * CHUNK + 1};
	liar.from = 3;
	for (unsigned i = 0; i < 3; i++) {
		pthread_t thread;
		uint64_t ptr;
		handle.bytes = sizes[i];
		liar.listener = spill_fd_pass_listen(handle.name);
		assert_int_equal(pthread_create(&thread, NULL, lie, made), 0);
		assert_int_equal(open_handle(&handle, &one_context, &ptr), i == 1 ? 0 : FAKE_INVALID);
		pthread_join(thread, NULL);
		close(liar.listener);
		if (i == 1)
			close_handle(ptr);
	}
	spill_placement_release(made, false);
	nothing_is_held();
}

/* So many chunks and bytes are asked on for, and not one more. The bytes are those of all chunks. */
TEST(a_process_that_answers_with_very_much)
{
	enum { MOST_PARTS = 1 << 22 };
	const uint64_t most_bytes = 1ull << 46;
	const struct {
		struct spill_ipc_answer answer;
		unsigned until, asked;
	} cases[] = {
	    {{MOST_PARTS, CHUNK}, 1, 2}, {{MOST_PARTS + 1, CHUNK}, 1, 1}, {{3, most_bytes}, 0, 2},
	    {{3, most_bytes + 1}, 0, 1}, {{3, most_bytes / 2}, 0, 3},
	};
	struct spill_placement *made = make();
	struct spill_ipc_handle handle = {
	    .magic = SPILL_IPC_MAGIC, .name = "one who boasts", .number = 1, .bytes = BYTES};
	liar.from = 0;
	liar.descriptor = 0;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		pthread_t thread;
		uint64_t ptr;
		liar.answer = cases[i].answer;
		liar.until = cases[i].until;
		liar.asked = 0;
		liar.listener = spill_fd_pass_listen(handle.name);
		assert_int_equal(pthread_create(&thread, NULL, lie, made), 0);
		assert_int_equal(open_handle(&handle, &one_context, &ptr), FAKE_INVALID);
		pthread_join(thread, NULL);
		close(liar.listener);
		assert_int_equal(liar.asked, cases[i].asked);
	}
	liar.until = 0;
	spill_placement_release(made, false);
	nothing_is_held();
}

/* It serves under a name of its own, and does not know what its parent has opened. */
TEST(a_forked_child_begins_anew)
{
	char handle[SPILL_IPC_HANDLE_BYTES], again[SPILL_IPC_HANDLE_BYTES];
	struct spill_placement *made = make();
	struct spill_ipc_range range;
	uint64_t ptr;
	assert_true(spill_ipc_export(made, BYTES, handle));
	assert_int_equal(open_handle(handle, &one_context, &ptr), 0);
	pid_t child = fork();
	if (!child) {
		spill_fork_lock_take(&spill_ipc_export_fork_lock);
		spill_fork_lock_release(&spill_ipc_export_fork_lock, true);
		spill_fork_lock_take(&spill_ipc_import_fork_lock);
		spill_fork_lock_release(&spill_ipc_import_fork_lock, true);
		if (spill_ipc_is_own(handle) || spill_ipc_at(ptr, &range) || spill_ipc_close(ptr))
			_exit(1);
#ifdef __SANITIZE_THREAD__
		_exit(0); /* TSan lets a child of a process with threads start none */
#endif
		struct spill_placement *own = make();
		if (!spill_ipc_export(own, BYTES, again) || !memcmp(handle, again, sizeof(handle)) ||
		    !spill_ipc_is_own(again) || open_handle(again, &one_context, &ptr))
			_exit(2);
		_exit(0);
	}
	int status;
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	/* The parent serves as before. */
	close_handle(ptr);
	assert_int_equal(open_handle(handle, &one_context, &ptr), 0);
	close_handle(ptr);
	spill_placement_release(made, false);
	nothing_is_held();
}

/*
 * The end of the process wakes the thread that serves. A connection that was closed long ago has a number that is another
 * socket's by now: here that of the parent, which would notice its end.
 */
TEST(the_end_of_the_process_ends_no_other_socket)
{
#ifdef __SANITIZE_THREAD__
	skip(); /* TSan lets a child of a process with threads start none */
#endif
	int pair[2], status;
	char byte;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	pid_t child = fork();
	if (!child) {
		char handle[SPILL_IPC_HANDLE_BYTES];
		uint64_t ptr;
		spill_fork_lock_take(&spill_ipc_export_fork_lock);
		spill_fork_lock_release(&spill_ipc_export_fork_lock, true);
		struct spill_placement *own = make();
		if (!spill_ipc_export(own, BYTES, handle))
			_exit(1);
		unsigned before = open_descriptors();
		if (open_handle(handle, &one_context, &ptr))
			_exit(2);
		while (open_descriptors() > before)
			sched_yield();            /* the thread closes its side */
		for (unsigned i = 0; i < 32; i++) /* where libspill keeps its own (fd.c) */
			if (fcntl(pair[1], F_DUPFD, 200) < 0)
				_exit(3);
		close_handle(ptr);
		spill_placement_release(own, false);
		exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_int_equal(recv(pair[0], &byte, 1, MSG_DONTWAIT), -1); /* nothing, and no end */
	close(pair[0]);
	close(pair[1]);
}
