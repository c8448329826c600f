/*
 * Operations with another process: it imports a block, checks it and writes it. Both have a device
 * that other memory needs, too, so whatever may move does.
 *
 * The other process is this program with the word `import`. It has the block's ticket and expected
 * bytes, and a socket to this process.
 */
#include "api.h"

#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* Descriptors of the other process. */
enum { TICKET = 3, EXPECTED = 4, SOCKET = 5 };

struct task {
	struct ticket ticket;
	uint64_t value; /* that it fills the block with, in the end */
};

/* What the other process has seen. */
struct answer {
	int error;
	uint64_t wrong; /* bytes */
};

#define OWN 4 /* blocks of the other process, and of this one meanwhile; more than a full device has */
#define OWN_BYTES ((uint64_t)3000000)

static bool tell(int socket, const void *what, size_t bytes)
{
	return send(socket, what, bytes, MSG_NOSIGNAL) == (ssize_t)bytes;
}

static bool hear(int socket, void *what, size_t bytes)
{
	return recv(socket, what, bytes, MSG_WAITALL) == (ssize_t)bytes;
}

/* -- both processes ---------------------------------------------------------------------------- */

static int take_own(struct block *own, unsigned char value)
{
	int error = 0;

	for (unsigned i = 0; i < OWN && !error; i++) {
		own[i] = (struct block){.kind = PLAIN, .bytes = OWN_BYTES};
		error = api.take(&own[i], NULL);
		if (!error)
			error = api.set(own[i].address, (unsigned char)(value + i), OWN_BYTES, NULL, 0);
	}
	return error;
}

static int check_bytes(uint64_t address, const unsigned char *expected, unsigned char value, uint64_t bytes,
                       uint64_t *wrong)
{
	unsigned char *found = malloc(bytes);
	int error = found ? api.copy_now((uintptr_t)found, address, bytes, DOWNLOAD, 0) : -1;

	for (uint64_t i = 0; i < bytes && !error; i++)
		*wrong += found[i] != (expected ? expected[i] : value);
	free(found);
	return error;
}

static int give_own(struct block *own, unsigned char value, uint64_t *wrong)
{
	int error = 0;

	for (unsigned i = 0; i < OWN; i++) {
		if (!own[i].address)
			continue;
		int checked =
		    error ? 0
		          : check_bytes(own[i].address, NULL, (unsigned char)(value + i), OWN_BYTES, wrong);
		int given = api.give(&own[i], NULL, false);
		error = error ? error : checked ? checked : given;
	}
	return error;
}

/* -- the other process ------------------------------------------------------------------------- */

static int fill_all(const struct task *task, uint64_t address)
{
	uint64_t words = task->ticket.bytes / 8, value = task->value;
	void *parameters[] = {&address, &words, &value}, *stream;
	int error = api.stream_make(&stream);

	if (!error)
		error = api.launch(task->ticket.device, KERNEL_FILL, stream, parameters, 0);
	if (!error)
		error = api.wait(stream);
	return error ? error : api.stream_end(stream);
}

/* The block as the owner left it, twice, and then with other bytes. */
static int use_block(const struct task *task, uint64_t address, const unsigned char *expected)
{
	struct answer answer = {0};
	char word;

	answer.error = check_bytes(address, expected, 0, task->ticket.bytes, &answer.wrong);
	if (!tell(SOCKET, &answer, sizeof(answer)) || !hear(SOCKET, &word, 1))
		return -1;
	answer.error = check_bytes(address, expected, 0, task->ticket.bytes, &answer.wrong);
	if (!answer.error)
		answer.error = fill_all(task, address);
	return tell(SOCKET, &answer, sizeof(answer)) ? answer.error : -1;
}

int share_child(void)
{
	struct task task;
	struct block own[OWN] = {{0}};
	uint64_t address = 0, wrong = 0;
	void *pool = NULL;

	if (!hear(SOCKET, &task, sizeof(task)))
		return 2;
	unsigned char *expected = mmap(NULL, task.ticket.bytes, PROT_READ, MAP_SHARED, EXPECTED, 0);
	int device = task.ticket.device, error = expected == MAP_FAILED ? -1 : 0;
	task.ticket.descriptor = TICKET;
	error = error ? error : api.open(device, kernels_path);
	error = error ? error : take_own(own, 1);
	error = error ? error : shares.import(&task.ticket, &address, &pool);
	error = error ? error : use_block(&task, address, expected);
	error = error ? error : shares.import_end(&task.ticket, address, pool);
	int given = give_own(own, 1, &wrong);
	error = error ? error : given;
	int closed = api.close(device, 1);
	const struct answer end = {error ? error : closed, wrong};
	return tell(SOCKET, &end, sizeof(end)) ? 0 : 2;
}

/* -- this process ------------------------------------------------------------------------------ */

/* The other process has a log of its own, beside this one's. */
static char **environment_of_child(char *log, size_t room)
{
	static const char name[] = "SPILL_LOG=";
	size_t count = 0, kept = 0;

	while (environ[count])
		count++;
	char **made = calloc(count + 1, sizeof(*made));
	for (size_t i = 0; i < count && made; i++) {
		made[kept++] = environ[i];
		if (strncmp(environ[i], name, sizeof(name) - 1) != 0)
			continue;
		const char *slash = strrchr(environ[i], '/');
		snprintf(log, room, "%.*s/child-%%p.jsonl", slash ? (int)(slash - environ[i]) : 0,
		         environ[i]);
		made[kept - 1] = log;
	}
	return made;
}

static pid_t start_child(const struct ticket *ticket, int expected, int socket)
{
	char log[512], *words[] = {"random", "import", (char *)kernels_path, NULL};
	posix_spawn_file_actions_t actions;
	pid_t child = -1;
	char **environment = environment_of_child(log, sizeof(log));

	posix_spawn_file_actions_init(&actions);
	/* Descriptors above those of the child, so that none is replaced before it is copied. */
	int from[] = {fcntl(ticket->descriptor < 0 ? expected : ticket->descriptor, F_DUPFD_CLOEXEC, 64),
	              fcntl(expected, F_DUPFD_CLOEXEC, 64), fcntl(socket, F_DUPFD_CLOEXEC, 64)};
	for (unsigned i = 0; i < 3; i++)
		posix_spawn_file_actions_adddup2(&actions, from[i], TICKET + (int)i);
	if (!environment || posix_spawn(&child, "/proc/self/exe", &actions, NULL, words, environment))
		child = -1;
	posix_spawn_file_actions_destroy(&actions);
	for (unsigned i = 0; i < 3; i++)
		close(from[i]);
	free(environment);
	return child;
}

/* The expected bytes, in a file that both processes map. */
struct expected {
	int file;
	unsigned char *bytes;
};

static bool expected_open(struct expected *expected, const struct block *block)
{
	expected->file = memfd_create("expected", MFD_CLOEXEC);
	if (expected->file < 0 || ftruncate(expected->file, (off_t)block->bytes))
		return false;
	expected->bytes = mmap(NULL, block->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, expected->file, 0);
	if (expected->bytes == MAP_FAILED)
		return false;
	memcpy(expected->bytes, block->shadow, block->bytes);
	return true;
}

/* While the other process has the block, this one makes other memory move, and writes the block. */
static int change_meanwhile(struct worker *worker, struct block *block, uint64_t value, uint64_t *wrong)
{
	const struct action action = {
	    .what = FILL, .to = block, .bytes = (block->bytes + 15) / 16 * 8, .value = value};
	void *stream = worker->streams[block->device][block->stream];
	struct block own[OWN] = {{0}};

	int error = take_own(own, (unsigned char)value);
	error = error ? error : work_submit(worker, &action, stream, block->device, 0);
	error = error ? error : api.wait(stream);
	if (!error)
		work_apply(&action);
	int given = give_own(own, (unsigned char)value, wrong);
	return error ? error : given;
}

/* The other process has filled the block. Has this one's copy of it the same bytes? */
static int look_at_block(struct worker *worker, struct block *block, uint64_t value, uint64_t *wrong)
{
	const struct action all = {.what = FILL, .to = block, .bytes = block->bytes / 8 * 8, .value = value};
	int error = api.wait(worker->streams[block->device][block->stream]);

	work_apply(&all);
	return error ? error : check_bytes(block->address, block->shadow, 0, block->bytes, wrong);
}

static struct answer talk(struct worker *worker, struct block *block, const struct task *task,
                          struct expected *expected, int socket)
{
	struct answer first = {-2, 0}, second = {-2, 0}, third = {-2, 0}, ours = {0};
	char word = 0;

	if (!tell(socket, task, sizeof(*task)) || !hear(socket, &first, sizeof(first)) || first.error)
		return first;
	ours.error = change_meanwhile(worker, block, task->value + 1, &ours.wrong);
	memcpy(expected->bytes, block->shadow, block->bytes);
	if (!tell(socket, &word, 1) || !hear(socket, &second, sizeof(second)) || second.error)
		return second;
	if (!ours.error)
		ours.error = look_at_block(worker, block, task->value, &ours.wrong);
	if (!hear(socket, &third, sizeof(third)))
		return third;
	ours.error = ours.error ? ours.error : third.error;
	ours.wrong += second.wrong + third.wrong; /* second has those of the first, too */
	return ours;
}

static bool is_shared(const struct block *block)
{
	return shares.kinds[block->kind];
}

/* The export alone. */
struct outcome run_export(struct worker *worker, const uint64_t *a)
{
	struct block *block = block_from(worker, a[0], is_shared);
	struct ticket ticket = {.descriptor = -1};

	if (!block)
		return NOTHING_TO_DO;
	use_device(worker, block->device);
	int error = shares.hand_out(block, &ticket);
	if (ticket.descriptor >= 0)
		close(ticket.descriptor);
	return DONE_WITH(error, error != 0);
}

/* With a block that has been exported. */
static struct answer share_block(struct worker *worker, struct block *block, const struct task *task)
{
	struct expected expected = {-1, MAP_FAILED};
	struct answer answer = {-3, 0};
	int ends[2], status = -1;

	if (expected_open(&expected, block) && !socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends)) {
		pid_t child = start_child(&task->ticket, expected.file, ends[1]);

		close(ends[1]);
		if (child > 0)
			answer = talk(worker, block, task, &expected, ends[0]);
		close(ends[0]);
		if (child > 0 && (waitpid(child, &status, 0) != child || status))
			answer.error = answer.error ? answer.error : -4;
	}
	if (expected.bytes != MAP_FAILED)
		munmap(expected.bytes, block->bytes);
	close(expected.file);
	return answer;
}

static int export_block(struct worker *worker, struct block *block, struct task *task)
{
	int error = api.wait(worker->streams[block->device][block->stream]);

	task->ticket = (struct ticket){
	    .kind = block->kind, .device = block->device, .descriptor = -1, .bytes = block->bytes};
	return error ? error : shares.hand_out(block, &task->ticket);
}

/*
 * The first block of a device that may be exported: memory that libspill has placed elsewhere may not.
 * Figure 1: no export was allowed, and there was no other process.
 */
struct outcome run_share(struct worker *worker, const uint64_t *a)
{
	struct block *first = block_from(worker, a[0], is_shared), *block = first;
	struct task task = {.value = a[1]};
	int refused = 0, error;

	if (!first)
		return NOTHING_TO_DO;
	use_device(worker, first->device);
	for (unsigned i = 0; i < SLOTS; i++, block = &worker->blocks[(a[0] + i) % SLOTS]) {
		if (!is_shared(block) || block->device != first->device)
			continue;
		error = export_block(worker, block, &task);
		if (!error) {
			struct answer answer = share_block(worker, block, &task);

			if (task.ticket.descriptor >= 0)
				close(task.ticket.descriptor);
			return answer.wrong ? (struct outcome){.how = WRONG, .figure = answer.wrong}
			                    : DONE_WITH(answer.error, 0);
		}
		refused = refused ? refused : error;
		api.changed(worker->device, true); /* a refusal leaves a last error */
	}
	return DONE_WITH(refused, 1);
}
