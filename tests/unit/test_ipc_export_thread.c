/* The exporter's thread: how it starts, which errors it outlives, and how it ends. test_ipc_export.c has what it answers. */
#define SETUP setup
#include "unit.h"

#include <semaphore.h>

#define CHILD_SECONDS 10
#include "childtest.h"
#include "exporter_world.h"

/* The first test: what is registered once stays so. */
TEST(without_an_end_nothing_is_started)
{
	refused = "atexit";
	assert_false(export_it(&first.chunked));
	assert_string_equal(what_was_said(), "");
	assert_null(serving);
	setup(NULL);
	assert_true(export_it(&first.chunked));
	setup(NULL);
	assert_true(export_it(&first.chunked));
	assert_int_equal(registrations, 2);
}

/* -- how long it serves ------------------------------------------------------------------------ */

/* One connection after another, and no end by an error that passes. */
TEST(errors_of_accept)
{
	static const struct {
		int error;
		bool goes_on;
		unsigned pauses;
	} cases[] = {
	    {EMFILE, true, 1},  {ENFILE, true, 1},       {ENOBUFS, true, 1}, {ENOMEM, true, 1},
	    {EAGAIN, true, 0},  {EACCES, true, 0},       {EINTR, true, 0},   {EBADF, false, 0},
	    {EINVAL, false, 0}, {ECONNABORTED, true, 0},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char expected[100];
		setup(NULL);
		world.accept_error = cases[i].error;
		serve(2);
		int length =
		    snprintf(expected, sizeof(expected),
		             "spill-ipc:0 receive:0 close:610 receive:0 close:610 error:%d ", cases[i].error);
		snprintf(expected + length, sizeof(expected) - (size_t)length, "%sdetach:0",
		         cases[i].goes_on ? "error:9 " : "");
		assert_string_equal(what_was_said(), expected);
		assert_int_equal(fake_clock.sleeps, cases[i].pauses);
		assert_int_equal(fake_clock.slept_ns, cases[i].pauses * RETRY_NS);
		assert_false(spill_ipc_is_own(&handle)); /* nothing is served any more */
	}
	/* Nor is anything exported, for good. */
	assert_false(export_it(&second.chunked));
	assert_string_equal(what_was_said(), "");
}

/* The main thread has ended, and this one is the only other. Another user's connection does not hurry it. */
TEST(the_last_thread_of_the_process)
{
	static const struct {
		const char *stat;
		unsigned threads;
		bool no_proc;
		int error;
		bool ends;
	} cases[] = {
	    {"100 (a) b) Z 1", 2, false, EAGAIN, true},       {"100 (a) Z) S 1", 2, false, EAGAIN, false},
	    {"100 (a) b) Z 1", 3, false, EAGAIN, false},      {"100 (a) b) Z 1", 1, false, EAGAIN, false},
	    {"100 (a) b) Z 1", 2, true, EAGAIN, false},       {NULL, 2, false, EAGAIN, false},
	    {"nothing of the kind", 2, false, EAGAIN, false}, {"100 (a) b) Z 1", 2, false, EACCES, false},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		setup(NULL);
		world.stat = cases[i].stat;
		world.threads = cases[i].threads;
		world.no_proc = cases[i].no_proc;
		world.accept_error = cases[i].error;
		serve(0);
		bool once_more = strstr(what_was_said(), "error:9 detach:0");
		assert_int_equal(once_more, !cases[i].ends);
	}
}

static void replace_device(void)
{
	world.device++;
}

static void replace_inode(void)
{
	world.inode++;
}

static void refuse_fstat(void)
{
	refused = "fstat";
}

/* The program has closed the listener, and its number is another file's. */
TEST(a_number_that_is_another_files)
{
	void (*const cases[])(void) = {replace_device, replace_inode, refuse_fstat};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		setup(NULL);
		world.on_accept = cases[i];
		serve(5);
		assert_string_equal(what_was_said(), "spill-ipc:0 receive:0 close:610 detach:0");
	}
}

/* -- the start --------------------------------------------------------------------------------- */

TEST(each_refusal_of_the_start)
{
	static const char *const cases[][2] = {
	    {"getrandom", ""},
	    {"listen", "listen:1"},
	    {"fstat", "listen:1 close:600"},
	    {"start", "listen:1 close:600"},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		setup(NULL);
		refused = cases[i][0];
		assert_false(export_it(&first.chunked));
		assert_string_equal(what_was_said(), cases[i][1]);
		refused = NULL;
		assert_false(export_it(&first.chunked));
		assert_string_equal(what_was_said(), "");
	}
}

TEST(a_start_that_fails_leaves_other_files_open)
{
	refused = "start";
	world.on_start = replace_inode;
	assert_false(export_it(&first.chunked));
	assert_string_equal(what_was_said(), "listen:1");
}

TEST(a_listener_can_be_zero)
{
	static const char *const cases[] = {"fstat", "start"};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		setup(NULL);
		world.listener = 0;
		refused = cases[i];
		assert_false(export_it(&first.chunked));
		assert_string_equal(what_was_said(), "listen:1 close:0");
	}
}

static void run_thread(void)
{
	serving(NULL);
}

/* The thread may end before the call that started it returns. */
TEST(a_thread_that_ends_at_once)
{
	world.on_start = run_thread;
	assert_false(export_it(&first.chunked));
	assert_string_equal(what_was_said(), "listen:1 spill-ipc:0 error:9 detach:0");
	assert_false(export_it(&first.chunked));
	assert_string_equal(what_was_said(), "");
}

static sem_t looks;
static bool other_made;

static void another_looks(void)
{
	if (fake_clock.sleeps == 2)
		sem_post(&looks);
}

static void *export_second(void *unused)
{
	char room[SPILL_IPC_HANDLE_BYTES];
	other_made = spill_ipc_export(&second.chunked.base, UNIT, room);
	return NULL;
}

static pthread_t other;

static void start_other(void)
{
	assert_int_equal(pthread_create(&other, NULL, export_second, NULL), 0);
	sem_wait(&looks);
}

/* It starts nothing itself, and has its handle once the first thread has started the serving one. */
TEST(two_threads_export_first)
{
	assert_int_equal(sem_init(&looks, 0, 0), 0);
	assert_true(export_it(&second.chunked));
	forget(); /* the second one is exported, so that only one thread says something */
	what_was_said();
	fake_clock.on_sleep = another_looks;
	world.on_start = start_other;
	assert_true(export_it(&first.chunked));
	pthread_join(other, NULL);
	assert_true(other_made);
	assert_string_equal(what_was_said(), "listen:2 " EXPORTED);
	sem_destroy(&looks);
}

/* -- the end of the process -------------------------------------------------------------------- */

static void end_process(void)
{
	at_end();
	say("ended", 0);
}

#define CHECK_SAID(expected) CHECK(!strcmp(what_was_said(), expected))

/* Between two connections. Nothing is served or exported any more. */
CHILD_TEST(an_end_wakes_the_accept)
{
	world.on_accept = end_process;
	world.accept_error = EINVAL;
	serve(0);
	CHECK_SAID("spill-ipc:0 shutdown:600 join:0 ended:0 error:22");
	CHECK(!spill_ipc_is_own(&handle));
	CHECK(!export_it(&second.chunked));
	at_end();
	CHECK_SAID("");
	forget(); /* a child of a process that ends does not begin anew */
	CHECK_SAID("close:600");
	CHECK(!export_it(&second.chunked));
	CHECK_SAID("");
}

/* In a connection, or just before it: no more questions are answered. */
CHILD_TEST(an_end_wakes_the_receive)
{
	world.questions = 3;
	world.on_receive = end_process;
	serve(2);
	CHECK_SAID("spill-ipc:0 receive:3 shutdown:600 shutdown:610 join:0 ended:0 send:-1 close:610");
}

CHILD_TEST(an_end_before_the_first_question)
{
	world.questions = 3;
	world.on_accept = end_process;
	serve(2);
	CHECK_SAID("spill-ipc:0 shutdown:600 join:0 ended:0 close:610");
}

CHILD_TEST(an_end_with_sockets_that_are_zero)
{
	world.connection = world.listener = 0;
	world.on_receive = end_process;
	serve(1);
	CHECK_SAID("spill-ipc:0 receive:0 shutdown:0 shutdown:0 join:0 ended:0 close:0");
}

/* Of a connection that was closed, and of a listener whose number is another file's. */
CHILD_TEST(an_end_behind_a_connection)
{
	serve(1);
	what_was_said();
	setup(NULL);
	CHECK(export_it(&first.chunked));
	what_was_said();
	replace_inode();
	at_end();
	CHECK_SAID("join:0");
}

static void end_in_the_second_accept(void)
{
	world.on_accept = end_process;
}

CHILD_TEST(an_end_in_the_second_accept)
{
	world.on_receive = end_in_the_second_accept;
	serve(1);
	CHECK_SAID("spill-ipc:0 receive:0 close:610 shutdown:600 join:0 ended:0 error:9");
}

TEST(a_child_leaves_its_parents_sockets_alone)
{
	assert_true(export_it(&first.chunked));
	what_was_said();
	world.process = 101; /* no handler saw the fork */
	at_end();
	assert_string_equal(what_was_said(), "");
	assert_true(spill_ipc_is_own(&handle));
}

CHILD_TEST(what_does_not_serve_is_not_ended)
{
	serve(0);
	what_was_said();
	at_end();
	CHECK_SAID("");
}

/* In the child of a fork: it closes what it inherited, and begins anew. */
TEST(a_forked_child_forgets)
{
	assert_true(export_it(&first.chunked));
	world.question.number = handle.number;
	what_was_said();
	forget();
	assert_string_equal(what_was_said(), "close:600");
	assert_false(spill_ipc_is_own(&handle));
	forget();
	assert_string_equal(what_was_said(), "");
	assert_true(export_it(&second.chunked));
	assert_int_equal(handle.name[0], 2);
	assert_true(handle.number > world.question.number);
	/* What its parent has exported is not found. */
	world.questions = 1;
	world.accepts = 1;
	serving(NULL);
	assert_non_null(strstr(what_was_said(), "receive:1 send:-1"));
	/* A number that is another file's by now. */
	setup(NULL);
	assert_true(export_it(&first.chunked));
	what_was_said();
	world.inode++;
	forget();
	assert_string_equal(what_was_said(), "");
}

/* The last close is that of the thread, which the child does not have. */
TEST(a_forked_child_closes_the_connection)
{
	world.on_receive = forget;
	serve(1);
	assert_non_null(strstr(what_was_said(), "receive:0 close:600 close:610 close:610"));
	setup(NULL);
	world.connection = world.listener = 0;
	world.on_receive = forget;
	serve(1);
	assert_non_null(strstr(what_was_said(), "receive:0 close:0 close:0 close:0"));
}
