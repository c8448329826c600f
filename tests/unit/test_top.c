/*
 * spill top without a terminal: pages of whoever, whose device is whose, rows in their order, rates, texts in their columns.
 */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "top.h"

/* -- what others hold ------------------------------------------------------------------------------------------ */

/* In place of card_use.c: NVML's answers. */
static uint64_t card_free = UINT64_MAX;
static struct cli_card_user card_users[8];
static unsigned card_user_count;

uint64_t cli_card_free(const char *uuid)
{
	return strcmp(uuid, "GPU-1") ? UINT64_MAX : card_free;
}

/* What lies behind the last one is a user that the caller did not get. */
unsigned cli_card_users(const char *uuid, struct cli_card_user *users, unsigned room)
{
	assert_in_range(room, 8, CLI_CARD_USERS);
	memcpy(users, card_users, sizeof(card_users));
	return strcmp(uuid, "GPU-1") ? 0 : card_user_count;
}

const char *cli_card_user_text(const struct cli_card_user *user, char text[CLI_CARD_USER_TEXT])
{
	return strcpy(text, user->name);
}

/* As AMD's driver has it; nothing else tells it here. */
TEST(others_by_the_kernel)
{
	char root[] = "/tmp/spill-top-XXXXXX", path[256];
	static struct cli_top_device device = {.about = {.pci = "0000:0a:00.0", .bytes = 1000}};
	struct cli_top_card card = {.device = &device, .held = 300, .others = 5};
	struct cli_top_view view = {.cards = &card, .card_count = 1};
	const struct cli_top_look look = {0};
	assert_non_null(mkdtemp(root));
	cli_top_ask_others(&view, &look, root);
	assert_true(card.others == UINT64_MAX);
	snprintf(path, sizeof(path),
	         "mkdir -p %s/bus/pci/devices/0000:0a:00.0 && echo 450 "
	         ">%s/bus/pci/devices/0000:0a:00.0/mem_info_vram_used",
	         root, root);
	assert_int_equal(system(path), 0);
	cli_top_ask_others(&view, &look, root);
	assert_int_equal(card.others, 150);
	card.held = 500; /* our count may be ahead of the driver's */
	cli_top_ask_others(&view, &look, root);
	assert_int_equal(card.others, 0);
	/* An address from a page leads nowhere else. */
	strcpy(device.about.pci, "./0000:0a:00.0");
	cli_top_ask_others(&view, &look, root);
	assert_true(card.others == UINT64_MAX);
	snprintf(path, sizeof(path), "rm -r %s", root);
	assert_int_equal(system(path), 0);
}

TEST(others_by_the_management_library)
{
	static struct cli_top_device device = {.about = {.uuid = "GPU-1", .bytes = 1000}};
	struct cli_top_card card = {.device = &device, .held = 300};
	struct cli_top_view view = {.cards = &card, .card_count = 1};
	const struct cli_top_look look = {0};
	card_free = 600;
	cli_top_ask_others(&view, &look, "/nonexistent");
	assert_int_equal(card.others, 100);
	card_free = 2000; /* its total counts more than CUDA's */
	cli_top_ask_others(&view, &look, "/nonexistent");
	assert_int_equal(card.others, 0);
	card_free = UINT64_MAX;
	cli_top_ask_others(&view, &look, "/nonexistent");
	assert_true(card.others == UINT64_MAX);
}

/* Those with most memory, in the library's order, without the ones whose pages we read. */
TEST(a_few_others_are_named)
{
	static struct cli_top_process processes[2] = {{.pid = 101}, {.pid = 103}};
	static struct cli_top_device device = {.about = {.uuid = "GPU-1", .bytes = 1000}};
	const struct cli_top_look look = {.processes = processes, .count = 2};
	struct cli_top_card card = {.device = &device};
	struct cli_top_view view = {.cards = &card, .card_count = 1};
	for (unsigned i = 0; i < 8; i++)
		card_users[i] = (struct cli_card_user){100 + i, 1000 - i, ""};
	for (card_user_count = 0; card_user_count < 8; card_user_count++) {
		static const unsigned named[] = {100, 102, 104, 105, 106, 107};
		static const unsigned expected[] = {0, 1, 1, 2, 2, 3, 4, 4};
		cli_top_ask_others(&view, &look, "/nonexistent");
		assert_int_equal(card.named, expected[card_user_count]);
		for (unsigned i = 0; i < card.named; i++)
			assert_int_equal(card.other[i].pid, named[i]);
	}
	strcpy(device.about.uuid, "GPU-2");
	cli_top_ask_others(&view, &look, "/nonexistent");
	assert_int_equal(card.named, 0);
}

/* -- pages --------------------------------------------------------------------------------------------------- */

static struct spill_live_page fresh(void)
{
	struct spill_live_page page = {.head = {.magic = SPILL_LIVE_PAGE_MAGIC,
	                                        .version = SPILL_LIVE_PAGE_VERSION,
	                                        .size = sizeof(page),
	                                        .pid = (uint32_t)getpid(),
	                                        .devices = 1,
	                                        .program = "program"}};
	strcpy(page.devices[0].name, "Device");
	page.figures[0].lock = 2;
	page.figures[0].figure[SPILL_COUNTER_ALLOCS] = 1;
	page.figures[0].figure[SPILL_COUNTER_DEVICE] = 100;
	return page;
}

#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

static int file_of(const void *page, size_t size, int seals)
{
	int fd = memfd_create(SPILL_LIVE_PAGE_NAME, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	assert_true(fd >= 0 && write(fd, page, size) == (ssize_t)size);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, seals), 0);
	return fd;
}

static enum cli_top_page judged(const void *page, size_t size, int seals)
{
	static struct cli_top_process process;
	int fd = file_of(page, size, seals);
	enum cli_top_page answer = cli_top_page(fd, &process);
	close(fd);
	return answer;
}

TEST(only_a_sealed_page_is_one)
{
	struct spill_live_page page = fresh(), other;
	assert_int_equal(judged(&page, sizeof(page), SEALS), CLI_TOP_READ);
	assert_int_equal(judged(&page, sizeof(page), F_SEAL_GROW), CLI_TOP_BROKEN); /* it could be cut */
	assert_int_equal(judged(&page, sizeof(page) - 1, SEALS), CLI_TOP_BROKEN);
	assert_int_equal(judged(&page, 1, SEALS), CLI_TOP_BROKEN);
	assert_int_equal(judged(&page, 0, SEALS), CLI_TOP_BROKEN);
	other = page;
	other.head.magic++;
	assert_int_equal(judged(&other, sizeof(other), SEALS), CLI_TOP_BROKEN);
	other = page;
	other.head.version++;
	assert_int_equal(judged(&other, sizeof(other), SEALS), CLI_TOP_OTHER);
	assert_int_equal(judged(&other, sizeof(other.head), SEALS), CLI_TOP_OTHER); /* a shorter one */
	other = page;
	other.head.size--;
	assert_int_equal(judged(&other, sizeof(other), SEALS), CLI_TOP_OTHER);
	/* A file that is no memory of ours, and a pipe. */
	static struct cli_top_process process;
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC), ends[2];
	assert_int_equal(cli_top_page(fd, &process), CLI_TOP_BROKEN);
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(cli_top_page(ends[0], &process), CLI_TOP_BROKEN);
	close(fd);
	close(ends[0]);
	close(ends[1]);
}

TEST(nothing_in_a_page_is_trusted)
{
	static struct spill_live_page page;
	static struct cli_top_process process;
	memset(&page, 'x', sizeof(page));
	for (unsigned i = 0; i < SPILL_DEVICES; i++)
		page.figures[i].lock = 2;
	page.decided = 2;
	assert_true(cli_top_copy(&page, &process));
	assert_int_equal(process.head.devices, SPILL_DEVICES);
	assert_int_equal(process.device_count, SPILL_DEVICES);
	assert_int_equal(strlen(process.head.program), sizeof(process.head.program) - 1);
	assert_int_equal(strlen(process.head.log), sizeof(process.head.log) - 1);
	assert_int_equal(strlen(process.decision.caller), sizeof(process.decision.caller) - 1);
	assert_int_equal(strlen(process.devices[SPILL_DEVICES - 1].about.pci),
	                 sizeof(page.devices[0].pci) - 1);
	/* One that is being written for ever. */
	page.decided = 3;
	assert_true(cli_top_copy(&page, &process));
	assert_int_equal(process.decision.count, 0);
	assert_int_equal(process.device_count, SPILL_DEVICES);
	page.decided = 2;
	page.figures[7].lock = 1;
	assert_false(cli_top_copy(&page, &process));
}

static unsigned mappings(void)
{
	char line[512];
	unsigned count = 0;
	FILE *file = fopen("/proc/self/maps", "re");
	assert_non_null(file);
	while (fgets(line, sizeof(line), file))
		count += strstr(line, SPILL_LIVE_PAGE_NAME) != NULL;
	fclose(file);
	return count;
}

/* Of a look each second. */
TEST(no_page_stays_mapped)
{
	struct spill_live_page page = fresh();
	assert_int_equal(judged(&page, sizeof(page), SEALS), CLI_TOP_READ);
	page.head.magic++;
	assert_int_equal(judged(&page, sizeof(page), SEALS), CLI_TOP_BROKEN);
	assert_int_equal(mappings(), 0);
}

/* What was never written says nothing, whatever is there; a device without a name but with figures is one. */
TEST(what_was_never_written)
{
	static struct cli_top_process process;
	struct spill_live_page page = fresh();
	page.figures[0].lock = 0;
	page.figures[5].lock = 4;
	page.figures[5].figure[SPILL_COUNTER_OOMS] = 1;
	assert_true(cli_top_copy(&page, &process));
	assert_int_equal(process.device_count, 2);
	assert_false(process.devices[0].used);
	assert_int_equal(process.devices[0].figures[SPILL_COUNTER_DEVICE], 0);
	assert_int_equal(process.devices[1].number, 5);
	assert_true(process.devices[1].used);
	assert_int_equal(process.decision.count, 0);
}

/* -- in /proc ------------------------------------------------------------------------------------------------- */

static const struct cli_top_process *of(const struct cli_top_look *look, pid_t pid)
{
	for (size_t i = 0; i < look->count; i++)
		if (look->processes[i].pid == pid)
			return &look->processes[i];
	return NULL;
}

/* A /proc with no process but these: on this machine others may use libspill. */
static const char *proc_of(pid_t one, pid_t other)
{
	static char folder[] = "/tmp/top-XXXXXX";
	char path[64], target[64];
	if (strstr(folder, "XXXXXX"))
		assert_non_null(mkdtemp(folder));
	for (pid_t pid = one; pid; pid = pid == one ? other : 0) {
		snprintf(path, sizeof(path), "%s/%d", folder, (int)pid);
		snprintf(target, sizeof(target), "/proc/%d", (int)pid);
		assert_true(symlink(target, path) == 0 || errno == EEXIST);
	}
	return folder;
}

static void remove_proc(pid_t one, pid_t other)
{
	char path[64];
	snprintf(path, sizeof(path), "%s/%d", proc_of(one, other), (int)one);
	unlink(path);
	snprintf(path, sizeof(path), "%s/%d", proc_of(0, 0), (int)other);
	unlink(path);
}

/* The descriptor is inherited; the page says whose it is. */
TEST(a_page_is_its_owners)
{
	struct cli_top_look look = {0};
	struct spill_live_page page = fresh();
	int fd = file_of(&page, sizeof(page), SEALS), again = dup(fd), ready[2];
	assert_int_equal(pipe(ready), 0);
	pid_t child = fork();
	if (child == 0) {
		char byte;
		close(ready[1]);
		_exit(read(ready[0], &byte, 1) < 0);
	}
	const char *proc = proc_of(getpid(), child);
	cli_top_look(&look, proc);
	assert_non_null(of(&look, getpid()));
	assert_null(of(&look, child));
	assert_string_equal(of(&look, getpid())->head.program, "program");
	assert_int_equal(of(&look, getpid())->uid, getuid());
	unsigned mine = 0;
	for (size_t i = 0; i < look.count; i++)
		mine += look.processes[i].pid == getpid();
	assert_int_equal(mine, 1); /* though it has two descriptors of it */
	assert_int_equal(look.broken, 0);
	close(ready[0]);
	close(ready[1]);
	assert_int_equal(waitpid(child, NULL, 0), child);
	close(fd);
	cli_top_look(&look, proc);
	assert_non_null(of(&look, getpid()));
	close(again);
	cli_top_look(&look, proc);
	assert_null(of(&look, getpid()));
	remove_proc(getpid(), child);
	cli_top_free(&look);
}

TEST(what_cannot_be_read_is_counted)
{
	struct cli_top_look look = {0};
	struct spill_live_page page = fresh();
	char text[512];
	int open_one = file_of(&page, sizeof(page), F_SEAL_GROW);
	page.head.version++;
	int later = file_of(&page, sizeof(page), SEALS);
	cli_top_look(&look, proc_of(getpid(), 0));
	assert_int_equal(look.broken, 1);
	assert_int_equal(look.other, 1);
	cli_top_remark(&look, 0, text, sizeof(text));
	assert_non_null(strstr(text, "1 could not be read; 1 of another version of libspill"));
	close(open_one);
	close(later);
	remove_proc(getpid(), 0);
	assert_int_equal(rmdir(proc_of(0, 0)), 0);
	cli_top_look(&look, "/nowhere");
	assert_true(look.blind);
	cli_top_remark(&look, 0, text, sizeof(text));
	assert_string_equal(text, "/proc cannot be read");
	cli_top_free(&look);
}

/* -- rows ----------------------------------------------------------------------------------------------------- */

struct one {
	pid_t pid;
	const char *program;
	struct {
		const char *uuid;
		uint64_t device, host, away, demoted, limit;
	} devices[3];
};

static void add(struct cli_top_look *look, struct one one)
{
	look->processes = realloc(look->processes, (look->count + 1) * sizeof(*look->processes));
	struct cli_top_process *process = &look->processes[look->count++];
	memset(process, 0, sizeof(*process));
	process->pid = one.pid;
	process->uid = getuid();
	process->ino = (ino_t)one.pid;
	snprintf(process->head.program, sizeof(process->head.program), "%s", one.program);
	for (unsigned i = 0; i < 3 && one.devices[i].uuid; i++) {
		struct cli_top_device *device = &process->devices[process->device_count++];
		device->number = i;
		snprintf(device->about.uuid, sizeof(device->about.uuid), "%s", one.devices[i].uuid);
		device->about.limit = one.devices[i].limit ? one.devices[i].limit : UINT64_MAX;
		device->used = one.devices[i].device || one.devices[i].host;
		device->figures[SPILL_COUNTER_ALLOCS] = device->used;
		device->figures[SPILL_COUNTER_DEVICE] = one.devices[i].device;
		device->figures[SPILL_COUNTER_HOST] = one.devices[i].host;
		device->figures[SPILL_COUNTER_AWAY] = one.devices[i].away;
		device->figures[SPILL_COUNTER_DEMOTED] = one.devices[i].demoted;
		device->figures[SPILL_COUNTER_DEMOTIONS] = one.devices[i].demoted / 10;
	}
}

static const struct cli_top_order by_device = {.by = CLI_TOP_DEVICE, .filter = ""};
static const struct cli_top_look nobody;

/* "PID:DEVICE …" */
static const char *arranged(const struct cli_top_look *look, struct cli_top_order order)
{
	static char text[512];
	struct cli_top_view view = {0};
	cli_top_arrange(&view, look, &nobody, &order);
	text[0] = '\0';
	for (size_t i = 0; i < view.count; i++)
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%d:%u", i ? " " : "",
		         (int)view.rows[i].process->pid, view.rows[i].number);
	cli_top_view_free(&view);
	return text;
}

TEST(rows_in_order)
{
	struct cli_top_look look = {0};
	add(&look, (struct one){30, "beta", {{"A", 50, 1, 1}, {"B", 500, 7, 7}}});
	add(&look, (struct one){10, "Alpha", {{"A", 70, 9, 9}, {"B"}}});
	add(&look, (struct one){20, "gamma", {{"A"}, {"B"}}});
	assert_string_equal(arranged(&look, by_device), "30:1 10:0 30:0 20:0");
	assert_string_equal(arranged(&look, (struct cli_top_order){CLI_TOP_DEVICE, true, ""}),
	                    "20:0 30:0 10:0 30:1");
	assert_string_equal(arranged(&look, (struct cli_top_order){CLI_TOP_PID, false, ""}),
	                    "10:0 20:0 30:0 30:1");
	assert_string_equal(arranged(&look, (struct cli_top_order){CLI_TOP_PROGRAM, false, ""}),
	                    "10:0 30:0 30:1 20:0");
	assert_string_equal(arranged(&look, (struct cli_top_order){CLI_TOP_SPILLED, false, ""}),
	                    "10:0 30:1 30:0 20:0");
	assert_string_equal(arranged(&look, (struct cli_top_order){CLI_TOP_DEV, false, ""}),
	                    "10:0 20:0 30:0 30:1");
	assert_string_equal(arranged(&look, (struct cli_top_order){CLI_TOP_PID, false, "ALPH"}), "10:0");
	assert_string_equal(arranged(&look, (struct cli_top_order){CLI_TOP_PID, false, "30"}), "30:0 30:1");
	assert_string_equal(arranged(&look, (struct cli_top_order){CLI_TOP_PID, false, "none"}), "");
	assert_string_equal(arranged(&nobody, by_device), "");
	cli_top_free(&look);
}

/* The second process sees the second device only, as its first (CUDA_VISIBLE_DEVICES=1). */
TEST(devices_are_one_whatever_their_number)
{
	struct cli_top_look look = {0};
	struct cli_top_view view = {0};
	add(&look, (struct one){10, "one", {{"A", 70, 0, 0, 0, 100}, {"B", 30, 5, 5, 0, 200}}});
	add(&look, (struct one){20, "two", {{"B", 40, 6, 6, 0, 300}}});
	assert_string_equal(arranged(&look, by_device), "10:0 20:1 10:1");
	cli_top_arrange(&view, &look, &nobody, &by_device);
	assert_int_equal(view.card_count, 2);
	assert_int_equal(view.cards[1].held, 70);
	assert_int_equal(view.cards[1].away, 11);
	assert_int_equal(view.cards[1].limit, 500);
	assert_int_equal(view.cards[1].users, 2);
	look.processes[0].devices[1].about.limit = UINT64_MAX; /* then there is none of both together */
	cli_top_arrange(&view, &look, &nobody, &by_device);
	assert_true(view.cards[1].limit == UINT64_MAX);
	/* Nobody knows both: numbered as they come. */
	look.processes[0].device_count = 1;
	assert_string_equal(arranged(&look, by_device), "10:0 20:1");
	/* Without names they are told apart by their numbers. */
	look.processes[0].devices[0].about.uuid[0] = look.processes[1].devices[0].about.uuid[0] = '\0';
	assert_string_equal(arranged(&look, by_device), "10:0 20:0");
	static const struct {
		const char *uuid[2], *pci[2], *name[2];
		unsigned number[2];
		bool same;
	} cases[] = {
	    {{"A", "A"}, {"1", "2"}, {"a", "b"}, {0, 1}, true},
	    {{"A", "B"}, {"1", "1"}, {"a", "a"}, {0, 0}, false},
	    {{"A", ""}, {"1", "1"}, {"a", "a"}, {0, 0}, false},
	    {{"", "B"}, {"1", "1"}, {"a", "a"}, {0, 0}, false},
	    {{"", ""}, {"1", "1"}, {"a", "b"}, {0, 1}, true},
	    {{"", ""}, {"1", "2"}, {"a", "a"}, {0, 0}, false},
	    {{"", ""}, {"1", ""}, {"a", "a"}, {0, 0}, false},
	    {{"", ""}, {"", "2"}, {"a", "a"}, {0, 0}, false},
	    {{"", ""}, {"", ""}, {"a", "b"}, {0, 0}, false},
	    {{"", ""}, {"", ""}, {"a", "a"}, {0, 1}, false},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		for (unsigned k = 0; k < 2; k++) {
			struct cli_top_device *device = &look.processes[k].devices[0];
			strcpy(device->about.uuid, cases[i].uuid[k]);
			strcpy(device->about.pci, cases[i].pci[k]);
			strcpy(device->about.name, cases[i].name[k]);
			device->number = cases[i].number[k];
		}
		cli_top_arrange(&view, &look, &nobody, &by_device);
		assert_int_equal(view.card_count, cases[i].same ? 1 : 2);
	}
	cli_top_view_free(&view);
	cli_top_free(&look);
}

/* Equal rows are in the order of their processes; what is larger in the column comes before. */
TEST(each_column_has_an_order)
{
	static const struct {
		enum cli_top_column by;
		enum spill_counter figure;
	} columns[] = {{CLI_TOP_DEVICE, SPILL_COUNTER_DEVICE},   {CLI_TOP_HOST, SPILL_COUNTER_HOST},
	               {CLI_TOP_MANAGED, SPILL_COUNTER_MANAGED}, {CLI_TOP_SPILLED, SPILL_COUNTER_AWAY},
	               {CLI_TOP_MOVES, SPILL_COUNTER_DEMOTIONS}, {CLI_TOP_RATE, SPILL_COUNTER_DEMOTED},
	               {CLI_TOP_OOMS, SPILL_COUNTER_OOMS},       {CLI_TOP_LIMIT, SPILL_COUNTERS_COUNT},
	               {CLI_TOP_DECISION, SPILL_COUNTERS_COUNT}};
	struct cli_top_look before = {.at_us = 0}, now = {.at_us = 1000000};
	for (pid_t pid = 40; pid > 0; pid -= 10) {
		add(&before, (struct one){pid, "one", {{"A", 70, .limit = 5}}});
		add(&now, (struct one){pid, "one", {{"A", 70, .limit = 5}}});
	}
	for (size_t i = 0; i < sizeof(columns) / sizeof(columns[0]); i++) {
		struct cli_top_view view = {0};
		struct cli_top_process *process = &now.processes[2]; /* of the pid 20 */
		struct cli_top_device kept = process->devices[0];
		struct cli_top_order order = {.by = columns[i].by, .filter = ""};
		if (columns[i].figure < SPILL_COUNTERS_COUNT)
			process->devices[0].figures[columns[i].figure] += 100;
		process->devices[0].about.limit += columns[i].by == CLI_TOP_LIMIT;
		process->decision.time_us = columns[i].by == CLI_TOP_DECISION;
		cli_top_arrange(&view, &now, &before, &order);
		static const pid_t expected[] = {20, 10, 30, 40}, reversed[] = {10, 30, 40, 20};
		for (unsigned k = 0; k < 4; k++)
			assert_int_equal(view.rows[k].process->pid, expected[k]);
		order.reversed = true;
		cli_top_arrange(&view, &now, &before, &order);
		for (unsigned k = 0; k < 4; k++)
			assert_int_equal(view.rows[k].process->pid, reversed[k]);
		process->devices[0] = kept;
		process->decision.time_us = 0;
		cli_top_view_free(&view);
	}
	cli_top_free(&now);
	cli_top_free(&before);
}

/* By their numbers, in whatever order processes have them. */
TEST(devices_are_in_order)
{
	struct cli_top_look look = {0};
	struct cli_top_view view = {0};
	add(&look, (struct one){10, "one", {{"A", 70}, {"B", 30}}});
	look.processes[0].devices[0].number = 4;
	cli_top_arrange(&view, &look, &nobody, &by_device);
	assert_int_equal(view.cards[0].number, 1);
	assert_int_equal(view.cards[1].number, 4);
	assert_string_equal(arranged(&look, (struct cli_top_order){CLI_TOP_PID, false, ""}), "10:1 10:4");
	/* If two have one number, all are numbered anew. */
	add(&look, (struct one){20, "two", {{"C", 70}}});
	look.processes[1].devices[0].number = look.processes[0].devices[1].number;
	assert_string_equal(arranged(&look, (struct cli_top_order){CLI_TOP_DEV, false, ""}),
	                    "10:0 20:1 10:2");
	cli_top_view_free(&view);
	cli_top_free(&look);
}

TEST(rates_of_two_looks)
{
	struct cli_top_look before = {.at_us = 1000000}, now = {.at_us = 3000000};
	struct cli_top_view view = {0};
	add(&before, (struct one){10, "one", {{"A", 70, 0, 0, 100}}});
	add(&before, (struct one){30, "old", {{"A", 50, 0, 0, 500}}});
	add(&now, (struct one){10, "one", {{"A", 70, 0, 0, 160}}});
	add(&now, (struct one){20, "new", {{"A", 60, 0, 0, 200}}});
	add(&now, (struct one){30, "again", {{"A", 50, 0, 0, 600}}});
	now.processes[2].ino = 99; /* the pid of one that has ended */
	cli_top_arrange(&view, &now, &before, &by_device);
	assert_true(view.rows[0].rated);
	assert_float_equal(view.rows[0].moved_bytes, 30, 1e-9);
	assert_float_equal(view.rows[0].moves, 3, 1e-9);
	assert_false(view.rows[1].rated);
	assert_false(view.rows[2].rated);
	now.processes[0].devices[0].figures[SPILL_COUNTER_DEMOTED] = 10;
	now.processes[0].devices[0].figures[SPILL_COUNTER_DEMOTIONS] = 1;
	cli_top_arrange(&view, &now, &before, &by_device);
	assert_float_equal(view.rows[0].moved_bytes, 0, 0);
	assert_float_equal(view.rows[0].moves, 0, 0);
	/* Counters of a page that lies: more than fits into a number of 64 bits each second. */
	for (unsigned i = 0; i < SPILL_COUNTERS_COUNT; i++)
		now.processes[0].devices[0].figures[i] = UINT64_MAX;
	now.at_us = before.at_us + 100000;
	cli_top_arrange(&view, &now, &before, &by_device);
	assert_true(view.rows[0].moves == 1e13 && view.rows[0].moved_bytes == 1e13);
	now.at_us = before.at_us;
	cli_top_arrange(&view, &now, &before, &by_device);
	assert_false(view.rows[0].rated);
	/* A device that the process has used since. */
	now.at_us++;
	before.processes[0].devices[0].number = 5;
	cli_top_arrange(&view, &now, &before, &by_device);
	assert_false(view.rows[0].rated);
	cli_top_view_free(&view);
	cli_top_free(&now);
	cli_top_free(&before);
}

/* -- texts ---------------------------------------------------------------------------------------------------- */

TEST(sizes_of_three_digits)
{
	static const struct {
		uint64_t bytes;
		const char *text;
	} cases[] = {{0, "0"},
	             {1, "1B"},
	             {999, "999B"},
	             {1000, "0.98K"},
	             {1024, "1.00K"},
	             {10240, "10.0K"},
	             {(1 << 20) - 1, "1.00M"},
	             {5ull << 30, "5.00G"},
	             {139ull << 30, "139G"},
	             {1000ull << 30, "0.98T"},
	             {UINT64_MAX, "16.0E"}};
	char text[32];
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		cli_top_size(cases[i].bytes, text, sizeof(text));
		assert_string_equal(text, cases[i].text);
	}
}

TEST(ages)
{
	static const struct {
		uint64_t seconds;
		const char *text;
	} cases[] = {{0, "0s"}, {59, "59s"}, {60, "1m"}, {3599, "59m"}, {3600, "1h"}, {86400 * 8ull, "8d"}};
	char text[32];
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		cli_top_age(cases[i].seconds * 1000000 + 5, 5, text, sizeof(text));
		assert_string_equal(text, cases[i].text);
	}
	cli_top_age(5, 1000000000, text, sizeof(text)); /* a clock that was set back */
	assert_string_equal(text, "0s");
}

static const char *padded(const char *text, unsigned width, bool left)
{
	static char to[256];
	cli_top_pad(text, width, left, to, sizeof(to));
	return to;
}

TEST(texts_in_columns)
{
	assert_string_equal(padded("ab", 4, true), "ab  ");
	assert_string_equal(padded("ab", 4, false), "  ab");
	assert_string_equal(padded("abcdef", 4, true), "abcd");
	assert_string_equal(padded("a\x1b[2J\n", 8, true), "a?[2J?  "); /* nothing steers the terminal */
	assert_string_equal(padded("\xc2\x9b", 4, true), "??  ");
	if (!setlocale(LC_CTYPE, "C.UTF-8"))
		return;
	assert_string_equal(padded("\xc2\x9b", 4, true), "?   ");        /* nor does a C1 control */
	assert_string_equal(padded("a\xe2\x80\xaey", 5, true), "a?y  "); /* nor what turns directions */
	assert_string_equal(padded("größe", 7, true), "größe  ");
	assert_string_equal(padded("e\u0301x", 3, true), "e\u0301x "); /* an accent has no width of its own */
	assert_string_equal(padded("模型", 5, true), "模型 ");
	assert_string_equal(padded("模型", 3, true), "模 "); /* half of one is none */
	assert_string_equal(padded("a\xff\xc3", 4, true), "a?? ");
	assert_int_equal(cli_top_columns("模型a\xff"), 6);
	setlocale(LC_CTYPE, "C");
}

TEST(columns_give_way_in_turn)
{
	bool shown[CLI_TOP_COLUMN_COUNT];
	for (unsigned width = 200; width > 0; width--) {
		unsigned sum = 0;
		cli_top_fit(width, shown);
		for (unsigned i = 0; i < CLI_TOP_COLUMN_COUNT; i++) {
			sum += shown[i] ? cli_top_heads[i].width + 1 : 0;
			for (unsigned k = 0; k < CLI_TOP_COLUMN_COUNT; k++)
				if (shown[i] && !shown[k])
					assert_true(cli_top_heads[i].turn < cli_top_heads[k].turn);
		}
		assert_true(sum <= width + 1 || !shown[CLI_TOP_HOST]);
		assert_true(shown[CLI_TOP_PID] && shown[CLI_TOP_PROGRAM] && shown[CLI_TOP_DEVICE] &&
		            shown[CLI_TOP_SPILLED]);
	}
	/* All of them, with a blank between two. */
	unsigned whole = 0;
	for (unsigned i = 0; i < CLI_TOP_COLUMN_COUNT; i++)
		whole += cli_top_heads[i].width + (i > 0);
	for (unsigned missing = 0; missing < 2; missing++) {
		cli_top_fit(whole - missing, shown);
		for (unsigned i = 0; i < CLI_TOP_COLUMN_COUNT; i++)
			assert_int_equal(shown[i], !missing || i != CLI_TOP_USER);
	}
	cli_top_fit(80, shown);
	assert_true(shown[CLI_TOP_MOVES] && shown[CLI_TOP_DECISION] && shown[CLI_TOP_MANAGED]);
	assert_false(shown[CLI_TOP_USER]);
}

TEST(the_last_decision)
{
	struct cli_top_look look = {.wall_us = 103000000};
	struct cli_top_view view = {0};
	char text[512];
	add(&look, (struct one){10, "one", {{"A", 70}, {"B", 60}}});
	struct spill_live_page_decision *last = &look.processes[0].decision;
	*last = (struct spill_live_page_decision){
	    1, 100000000, 2 << 20, 0, "spill", "split", "oom", "default", "cuMemAlloc_v2", "libone.so+0x1"};
	cli_top_arrange(&view, &look, &nobody, &by_device);
	cli_top_cell(&view.rows[0], CLI_TOP_DECISION, look.wall_us, text, sizeof(text));
	assert_string_equal(text, "3s spill 2.00M split oom, rule default, cuMemAlloc_v2, libone.so+0x1");
	cli_top_cell(&view.rows[1], CLI_TOP_DECISION, look.wall_us, text, sizeof(text));
	assert_string_equal(text, "-"); /* it was about the other device */
	cli_top_cell(&view.rows[0], CLI_TOP_DECISION, look.wall_us, text, 8);
	assert_string_equal(text, "3s spil");
	cli_top_cell(&view.rows[0], CLI_TOP_MOVES, look.wall_us, text, sizeof(text));
	assert_string_equal(text, "-");
	view.rows[0].rated = true;
	view.rows[0].moves = 0;
	cli_top_cell(&view.rows[0], CLI_TOP_MOVES, look.wall_us, text, sizeof(text));
	assert_string_equal(text, "0");
	cli_top_cell(&view.rows[0], CLI_TOP_LIMIT, look.wall_us, text, sizeof(text));
	assert_string_equal(text, "-");
	strcpy(text, "?");
	cli_top_cell(&view.rows[1], CLI_TOP_RATE, look.wall_us, text, sizeof(text));
	assert_string_equal(text, "-");
	look.processes[0].devices[0].about.limit = 90;
	cli_top_cell(&view.rows[0], CLI_TOP_LIMIT, look.wall_us, text, sizeof(text));
	assert_string_equal(text, "90B");
	view.rows[0].moves = 0.25;
	cli_top_cell(&view.rows[0], CLI_TOP_MOVES, look.wall_us, text, sizeof(text));
	assert_string_equal(text, "0.2");
	view.rows[0].moves = 99.95; /* with a digit more it would be as wide as 1,000 */
	cli_top_cell(&view.rows[0], CLI_TOP_MOVES, look.wall_us, text, sizeof(text));
	assert_string_equal(text, "100");
	view.rows[0].moves = 1234;
	cli_top_cell(&view.rows[0], CLI_TOP_MOVES, look.wall_us, text, sizeof(text));
	assert_string_equal(text, "1234");
	cli_top_view_free(&view);
	cli_top_free(&look);
}

TEST(users_by_name)
{
	const struct passwd *entry = getpwuid(getuid());
	char number[32], name[64];
	snprintf(number, sizeof(number), "%u", getuid());
	snprintf(name, sizeof(name), "%s", entry ? entry->pw_name : number);
	assert_string_equal(cli_top_user(getuid()), name);
	assert_string_equal(cli_top_user(4123456789u), "4123456789");
	assert_string_equal(cli_top_user(getuid()), name);
}

TEST(remarks)
{
	static const struct {
		struct cli_top_look look;
		size_t shown;
		const char *text;
	} cases[] = {
	    {{.count = 1}, 1, ""},
	    {{.count = 1}, 0, "no process matches the filter"},
	    {{.count = 0}, 0, "no process uses libspill on a GPU now"},
	    {{.blind = true, .count = 1}, 0, "/proc cannot be read"},
	    {{.count = 1, .broken = 2, .other = 3, .closed = 4},
	     1,
	     "2 could not be read; 3 of another version of libspill; 4 processes of others not looked "
	     "into "
	     "(root may)"},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char text[512];
		cli_top_remark(&cases[i].look, cases[i].shown, text, sizeof(text));
		assert_string_equal(text, cases[i].text);
	}
}

/* What `show` prints. Valid until the next call. */
static const char *printed(void (*show)(const struct cli_top_look *, const struct cli_top_view *),
                           const struct cli_top_look *look, const struct cli_top_view *view)
{
	static char text[8192];
	FILE *own = stdout;
	memset(text, 0, sizeof(text));
	stdout = fmemopen(text, sizeof(text) - 1, "w");
	assert_non_null(stdout);
	show(look, view);
	fclose(stdout);
	stdout = own;
	return text;
}

/* Each part of it stands there only if it is known. */
TEST(the_line_of_a_card)
{
	static const struct {
		struct spill_live_page_device about;
		struct cli_top_card card;
		const char *line;
	} cases[] = {
	    {{.limit = UINT64_MAX},
	     {.others = UINT64_MAX, .limit = UINT64_MAX},
	     "device 0: 0 B held by 0 processes, spilled 0 B\n"},
	    {{.name = "Some GPU", .bytes = 8ull << 30},
	     {.number = 3, .held = 1 << 30, .users = 1, .others = 0, .limit = 0},
	     "device 3 Some GPU: 1.00 GiB of 8.00 GiB held by 1 process, 0 B by others, limit 0 B, spilled 0 "
	     "B\n"},
	    {{.pci = "0000:01:00.0"},
	     {.held = 1, .away = 2 << 20, .users = 2, .others = UINT64_MAX, .limit = 4 << 20},
	     "device 0 (0000:01:00.0): 1 B held by 2 processes, limit 4.00 MiB, spilled 2.00 MiB\n"},
	    {{.bytes = 1},
	     {.others = 5, .named = 1, .other = {{.name = "a"}}, .limit = 7},
	     "device 0: 0 B of 1 B held by 0 processes, 5 B by others (a), spilled 0 B\n"},
	    {{.bytes = 1},
	     {.others = 5, .named = 3, .other = {{.name = "a"}, {.name = "b"}, {.name = "c"}}, .limit = 7},
	     "device 0: 0 B of 1 B held by 0 processes, 5 B by others (a, b, c), spilled 0 B\n"},
	};
	const struct cli_top_look look = {.processes = NULL};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct cli_top_device device = {.about = cases[i].about};
		struct cli_top_card card = cases[i].card;
		struct cli_top_view view = {.cards = &card, .card_count = 1};
		char expected[512], remark[256];
		card.device = &device;
		cli_top_remark(&look, 0, remark, sizeof(remark));
		snprintf(expected, sizeof(expected), "%s%s%s", cases[i].line, remark, *remark ? "\n" : "");
		assert_string_equal(printed(cli_top_text, &look, &view), expected);
	}
}

/* Each column is as wide as its longest cell, and the last one ends with its text. */
TEST(the_table_as_text)
{
	struct cli_top_look look = {.wall_us = 103000000};
	struct cli_top_view view = {0};
	add(&look, (struct one){10, "a_program_of_a_long_name", {{"A", 70, 5, 5}}});
	add(&look, (struct one){2000, "b", {{"A", 60}}});
	look.processes[0].uid = look.processes[1].uid = 54321;
	look.processes[0].decision = (struct spill_live_page_decision){
	    1, 100000000, 2 << 20, 0, "spill", "split", "oom", "default", "f", "g"};
	cli_top_arrange(&view, &look, &nobody, &by_device);
	view.card_count = 0;
	assert_string_equal(
	    printed(cli_top_text, &look, &view),
	    "    PID USER     PROGRAM                  DEV DEVICE   HOST MANAGED SPILLED  LIMIT"
	    " MOVES/s MOVED/s OOMS LAST DECISION\n"
	    "     10 54321    a_program_of_a_long_name   0    70B     5B       0      5B      -"
	    "       -       -    0 3s spill 2.00M split oom, rule default, f, g\n"
	    "   2000 54321    b                          0    60B      0       0       0      -"
	    "       -       -    0 -\n");
	cli_top_view_free(&view);
	cli_top_free(&look);
}

TEST(a_look_as_json)
{
	struct cli_top_look look = {.wall_us = 103000001, .closed = 1, .broken = 2, .other = 3};
	struct cli_top_view view = {0};
	char expected[4096], counters[1024] = "", zeros[1024] = "";
	static const char *const names[] = {
#define X(id, name, of) name,
	    SPILL_COUNTERS(X)
#undef X
	};
	assert_string_equal(printed(cli_top_json, &look, &view),
	                    "{\"time\":103.000001,\"devices\":[],\"rows\":[],\"not_looked_into\":1,"
	                    "\"not_readable\":2,\"other_versions\":3}\n");
	add(&look, (struct one){10, "one", {{"A", 70, .limit = 90}, {"B"}}});
	add(&look, (struct one){20, "two", {{"B", 60}}});
	for (unsigned i = 0; i < SPILL_COUNTERS_COUNT; i++) {
		look.processes[0].devices[0].figures[i] = 100 + i;
		look.processes[1].devices[0].figures[i] = 0;
		snprintf(counters + strlen(counters), sizeof(counters) - strlen(counters), "\"%s\":%u,",
		         names[i], 100 + i);
		snprintf(zeros + strlen(zeros), sizeof(zeros) - strlen(zeros), "\"%s\":0,", names[i]);
	}
	struct cli_top_process *one = &look.processes[0], *two = &look.processes[1];
	one->head = (struct spill_live_page_head){
	    .pid = 7, .start_us = 2500000, .program = "one", .mode = "spill", .backend = "cuda", .log = "/l"};
	one->decision = (struct spill_live_page_decision){4,       100000000, 2 << 20,   1,   "spill",
	                                                  "split", "oom",     "default", "f", "g"};
	two->head =
	    (struct spill_live_page_head){.pid = 20, .program = "two", .mode = "observe", .backend = "hip"};
	two->decision = (struct spill_live_page_decision){.count = 1, .what = "spill"};
	one->uid = 5;
	two->uid = 6;
	strcpy(one->devices[0].about.name, "GPU");
	strcpy(one->devices[0].about.pci, "0000:0a:00.0");
	one->devices[0].about.bytes = 1000;
	cli_top_arrange(&view, &look, &nobody, &(struct cli_top_order){CLI_TOP_PID, false, ""});
	assert_int_equal(view.card_count, 2);
	assert_int_equal(view.count, 2);
	view.rows[0].rated = true;
	view.rows[0].moves = 1.5;
	view.rows[0].moved_bytes = 2048;
	view.cards[0].others = 30;
	view.cards[0].named = 2;
	view.cards[0].other[0] = (struct cli_card_user){.pid = 77, .bytes = 20, .name = "other"};
	view.cards[0].other[1] = (struct cli_card_user){.pid = 78, .bytes = UINT64_MAX};
	view.cards[1].others = UINT64_MAX;
	view.cards[1].users = 0; /* its limit is nobody's then */
	view.cards[1].limit = 5;
	snprintf(
	    expected, sizeof(expected),
	    "{\"time\":103.000001,\"devices\":["
	    "{\"device\":0,\"name\":\"GPU\",\"uuid\":\"A\",\"pci\":\"0000:0a:00.0\",\"bytes\":1000,"
	    "\"processes\":1,\"device_bytes\":%u,\"away_bytes\":%u,\"others_bytes\":30,\"others\":["
	    "{\"pid\":77,\"program\":\"other\",\"bytes\":20},{\"pid\":78,\"program\":null,\"bytes\":null}],"
	    "\"limit\":90},"
	    "{\"device\":1,\"name\":null,\"uuid\":\"B\",\"pci\":null,\"bytes\":null,\"processes\":0,"
	    "\"device_bytes\":0,\"away_bytes\":0,\"others_bytes\":null,\"others\":[],\"limit\":null}],"
	    "\"rows\":["
	    "{\"pid\":10,\"pid_inside\":7,\"uid\":5,\"program\":\"one\",\"mode\":\"spill\",\"backend\":"
	    "\"cuda\","
	    "\"since\":2.500000,\"log\":\"/l\",\"device\":0,\"dev\":0,\"limit\":90,%s"
	    "\"moves_per_second\":1.500000,\"moved_bytes_per_second\":2048.000000,\"last_decision\":{"
	    "\"count\":4,\"time\":100.000000,\"what\":\"spill\",\"bytes\":2097152,\"dev\":1,"
	    "\"place\":\"split\",\"reason\":\"oom\",\"rule\":\"default\",\"api\":\"f\",\"caller\":\"g\"}},"
	    "{\"pid\":20,\"pid_inside\":20,\"uid\":6,\"program\":\"two\",\"mode\":\"observe\",\"backend\":"
	    "\"hip\","
	    "\"since\":0.000000,\"log\":null,\"device\":1,\"dev\":0,\"limit\":null,%s"
	    "\"moves_per_second\":null,\"moved_bytes_per_second\":null,\"last_decision\":{"
	    "\"count\":1,\"time\":0.000000,\"what\":\"spill\",\"bytes\":0,\"dev\":0,"
	    "\"place\":null,\"reason\":null,\"rule\":null,\"api\":null,\"caller\":null}}],"
	    "\"not_looked_into\":1,\"not_readable\":2,\"other_versions\":3}\n",
	    100 + SPILL_COUNTER_DEVICE, 100 + SPILL_COUNTER_AWAY, counters, zeros);
	assert_string_equal(printed(cli_top_json, &look, &view), expected);
	two->decision.count = 0;
	assert_non_null(strstr(printed(cli_top_json, &look, &view),
	                       "\"moved_bytes_per_second\":null,\"last_decision\":null}],"));
	cli_top_view_free(&view);
	cli_top_free(&look);
}
