/*
 * The importer alone: what it asks the exporter and the vendor, and what it closes and gives back when either refuses. The
 * connection, the peers and the vendor are replaced. test_ipc.c has both sides.
 */
#define SETUP setup
#include "unit.h"

#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "ended.h"
#include "ipc.h"
#include "lock.h"
#include "peer.h"
#include "said.h"

enum { DEVICE = 3, PEER = 5, UNIT = 4096, INVALID = 1, REFUSED = 700 };

static int context;
static struct {
	int own_end, other_end; /* of the connection. A child of a fork holds own_end open, too */
	bool no_exporter;
	bool zero_connection, zero_descriptor; /* get the descriptor 0 */
	unsigned parts, ends_at;               /* the exporter ends before this part, from 0 */
	unsigned asked;                        /* the last part that was asked for */
	uint64_t count_of_last;                /* 0: the same as of the others */
	const char *refused;                   /* the vendor's call with this word */
} world;

/* -- in place of the connection ---------------------------------------------------------------- */

/* One more of it. Without `zero` it is no small number. */
static int descriptor_of(int fd, bool zero)
{
	return zero ? dup(fd) : fcntl(fd, F_DUPFD, 20);
}

int spill_fd_pass_connect(const unsigned char name[SPILL_FD_PASS_NAME])
{
	return world.no_exporter ? -1 : descriptor_of(world.own_end, world.zero_connection);
}

bool spill_fd_pass_send(int socket, const void *message, size_t bytes, int descriptor)
{
	const struct spill_ipc_question *question = message;
	assert_int_equal(descriptor, -1);
	assert_int_equal(socket == 0, world.zero_connection);
	world.asked = (unsigned)question->index;
	say("ask", question->number * 10 + question->index);
	return true;
}

bool spill_fd_pass_receive(int socket, void *message, size_t bytes, int *descriptor)
{
	if (world.asked >= world.ends_at)
		return false;
	bool last = world.asked + 1 == world.parts;
	*(struct spill_ipc_answer *)message = (struct spill_ipc_answer){
	    .count = last && world.count_of_last ? world.count_of_last : world.parts, .bytes = UNIT};
	*descriptor = descriptor_of(world.own_end, world.zero_descriptor);
	return true;
}

/* -- in place of peers and the vendor ---------------------------------------------------------- */

unsigned spill_peer_devices(const struct spill_backend *backend, int device, int list[SPILL_DEVICES])
{
	assert_int_equal(device, DEVICE);
	list[0] = PEER;
	return 1;
}

uint64_t spill_chunked_granularity(const struct spill_backend *backend, int device)
{
	return UNIT;
}

static int answer(const char *word, uint64_t number)
{
	say(word, number);
	return world.refused && !strcmp(word, world.refused) ? REFUSED : 0;
}

static int vendor_from_descriptor(int descriptor, uint64_t *handle)
{
	assert_int_equal(descriptor == 0, world.zero_descriptor);
	*handle = world.asked + 1;
	return answer("handle", *handle);
}

static int vendor_release(uint64_t handle)
{
	return answer("release", handle);
}

static int vendor_reserve(uint64_t bytes, uint64_t alignment, uint64_t *va)
{
	*va = 1 << 20;
	return answer("reserve", bytes / alignment);
}

static int vendor_unreserve(uint64_t va, uint64_t bytes)
{
	return answer("unreserve", bytes / UNIT);
}

static int vendor_map(uint64_t va, uint64_t bytes, uint64_t handle)
{
	assert_int_equal(va, (1 << 20) + (handle - 1) * UNIT);
	return answer("map", handle);
}

static int vendor_unmap(uint64_t va, uint64_t bytes)
{
	return answer("unmap", (va - (1 << 20)) / UNIT + 1);
}

static int vendor_allow(uint64_t va, uint64_t bytes, int device)
{
	assert_true(va == 1 << 20 && bytes == world.parts * UNIT);
	int result = answer("allow", (uint64_t)device);
	return device == PEER ? REFUSED : result; /* which is no error */
}

static const struct spill_vendor_physical physical = {.release = vendor_release,
                                                      .from_descriptor = vendor_from_descriptor};
static const struct spill_vendor_vmm vmm = {.reserve = vendor_reserve,
                                            .unreserve = vendor_unreserve,
                                            .map = vendor_map,
                                            .unmap = vendor_unmap,
                                            .allow = vendor_allow};
static const struct spill_backend vendor = {.physical = &physical, .vmm = &vmm, .invalid_value = INVALID};

/* ---------------------------------------------------------------------------------------------- */

static int setup(void **state)
{
	memset(&world, 0, sizeof(world));
	world.parts = world.ends_at = 2;
	what_was_said();
	return 0;
}

/* Opens the handle of memory of so many bytes. It leaves no descriptor open, and the exporter sees the end. */
static int open_handle(uint64_t bytes, uint64_t *ptr)
{
	const struct spill_ipc_handle handle = {.magic = SPILL_IPC_MAGIC, .number = 7, .bytes = bytes};
	int ends[2];
	char byte;
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
	world.own_end = fcntl(ends[0], F_DUPFD, 50);
	world.other_end = ends[1];
	close(ends[0]);
	int result = spill_ipc_open(&vendor, DEVICE, &context, &handle, ptr);
	if (!world.no_exporter)
		assert_int_equal(recv(world.other_end, &byte, 1, MSG_DONTWAIT), 0);
	close(world.own_end);
	close(world.other_end);
	return result;
}

static void close_all(void)
{
	spill_ipc_context_ended(ENDED(&vendor, DEVICE, &context));
}

#define FETCHED "ask:70 handle:1 ask:71 handle:2 "
#define MAPPED "reserve:2 map:1 map:2 allow:5 allow:3 "

TEST(from_begin_to_end)
{
	uint64_t ptr = 0;
	assert_int_equal(open_handle(2 * UNIT, &ptr), 0);
	assert_int_equal(ptr, 1 << 20);
	assert_string_equal(what_was_said(), FETCHED MAPPED "release:1 release:2 allow:5");
	close_all();
	assert_string_equal(what_was_said(), "unmap:1 unmap:2 unreserve:2");
}

/* A program has closed its standard input. */
TEST(any_descriptor_can_be_zero)
{
	int input = fcntl(0, F_DUPFD, 60);
	for (unsigned zero = 0; zero < 2; zero++) {
		uint64_t ptr = 0;
		setup(NULL);
		world.zero_connection = !zero;
		world.zero_descriptor = zero;
		int ends[2]; /* keep 0 and small numbers free for the importer alone */
		assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
		world.own_end = ends[0];
		world.other_end = ends[1];
		const struct spill_ipc_handle handle = {
		    .magic = SPILL_IPC_MAGIC, .number = 7, .bytes = 2 * UNIT};
		char byte;
		close(0);
		int result = spill_ipc_open(&vendor, DEVICE, &context, &handle, &ptr);
		bool closed = fcntl(0, F_GETFD) == -1;
		dup2(input, 0);
		assert_int_equal(result, 0);
		assert_true(closed);
		assert_int_equal(recv(world.other_end, &byte, 1, MSG_DONTWAIT), 0);
		close(ends[0]);
		close(ends[1]);
		assert_string_equal(what_was_said(), FETCHED MAPPED "release:1 release:2 allow:5");
		close_all();
		what_was_said();
	}
	close(input);
}

/* A part of the memory is none, even if it has all the bytes that the program asked for. */
TEST(the_exporter_ends_midway)
{
	uint64_t ptr = 5;
	world.ends_at = 1;
	assert_int_equal(open_handle(UNIT, &ptr), INVALID);
	assert_string_equal(what_was_said(), "ask:70 handle:1 ask:71 release:1");
	world.ends_at = 0;
	assert_int_equal(open_handle(UNIT, &ptr), INVALID);
	assert_string_equal(what_was_said(), "ask:70");
	world.no_exporter = true;
	assert_int_equal(open_handle(UNIT, &ptr), INVALID);
	assert_string_equal(what_was_said(), "");
	assert_int_equal(ptr, 5);
}

TEST(an_exporter_that_contradicts_itself)
{
	uint64_t ptr = 5;
	world.count_of_last = 3;
	assert_int_equal(open_handle(2 * UNIT, &ptr), INVALID);
	assert_string_equal(what_was_said(), "ask:70 handle:1 ask:71 release:1");
	world.count_of_last = 0;
	assert_int_equal(open_handle(2 * UNIT + 1, &ptr), INVALID); /* more than its parts have */
	assert_string_equal(what_was_said(), FETCHED "release:1 release:2");
	assert_int_equal(open_handle(0, &ptr), INVALID);
	assert_int_equal(ptr, 5);
}

TEST(each_refusal_of_the_vendor)
{
	static const char *const cases[][2] = {
	    {"reserve", FETCHED "reserve:2 release:1 release:2"},
	    {"map", FETCHED "reserve:2 map:1 release:1 release:2 unreserve:2"},
	    {"allow", FETCHED MAPPED "release:1 release:2 unmap:1 unmap:2 unreserve:2"},
	};
	for (unsigned i = 0; i < 3; i++) {
		uint64_t ptr = 5;
		world.refused = cases[i][0];
		assert_int_equal(open_handle(2 * UNIT, &ptr), REFUSED);
		assert_string_equal(what_was_said(), cases[i][1]);
		assert_int_equal(ptr, 5);
	}
	world.refused = "handle";
	uint64_t ptr = 5;
	assert_int_equal(open_handle(2 * UNIT, &ptr), INVALID);
	assert_string_equal(what_was_said(), "ask:70 handle:1");
}

/* It costs no lock there: a call that frees asks each time. */
TEST(a_forked_child_has_nothing_open)
{
	struct spill_ipc_range range;
	uint64_t ptr = 0;
	assert_int_equal(open_handle(2 * UNIT, &ptr), 0);
	assert_true(spill_ipc_at(ptr, &range));
	spill_fork_lock_take(&spill_ipc_import_fork_lock);
	spill_fork_lock_release(&spill_ipc_import_fork_lock, true);
	unsigned locks = locks_taken();
	assert_false(spill_ipc_at(ptr, &range));
	assert_false(spill_ipc_close(ptr));
	assert_null(spill_ipc_take_unused(&range));
	assert_int_equal(locks_taken(), locks);
}
