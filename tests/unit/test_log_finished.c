/* log.keep: which old logs are finished, so that they count and may go. */
#define SETUP here
#define TEARDOWN remove_folder
#include "old_logs.h"

/* Its program had many arguments. */
static void make_long(const char *name, unsigned seconds)
{
	static char content[200000];
	size_t length = (size_t)snprintf(
	    content, sizeof(content), "{\"v\":1,\"kind\":\"start\",\"t\":0.000000,\"pid\":1,\"args\":[\"a\"");

	while (length < 150000)
		length += (size_t)snprintf(content + length, sizeof(content) - length, ",\"argument\"");
	snprintf(content + length, sizeof(content) - length, "]}\n" EXIT_LINE);
	make(name, content, seconds);
}

TEST(who_is_finished)
{
	const char *host = machine.nodename;

	make_log("killed-1.jsonl", host, boot, dead(), NOTE_LINE, 100);
	make_log("rebooted-1.jsonl", host, "another boot", getpid(), NOTE_LINE, 101);
	make_log("late-1.jsonl", "elsewhere", "b", 1, EXIT_LINE NOTE_LINE,
	         102); /* a destructor behind the exit line */
	make_long("long-1.jsonl", 103);
	make_log("alive-1.jsonl", host, boot, getpid(), NOTE_LINE, 103);
	make_log("far-1.jsonl", "elsewhere", "b", 1, NOTE_LINE, 104);
	make_log("again-1.jsonl", "elsewhere", "b", 1,
	         EXIT_LINE "{\"v\":1,\"kind\":\"start\",\"t\":0.000000,\"pid\":1}\n", 105);
	make_log("cut-1.jsonl", "elsewhere", "b", 1, "{\"v\":1,\"kind\":\"exit\",\"t\":2.0", 106);
	keep(0);
	assert_false(there("killed-1.jsonl"));
	assert_false(there("rebooted-1.jsonl"));
	assert_false(there("late-1.jsonl"));
	assert_false(there("long-1.jsonl"));
	assert_true(there("alive-1.jsonl"));
	assert_true(there("far-1.jsonl"));
	assert_true(there("again-1.jsonl"));
	assert_true(there("cut-1.jsonl"));
}

static void make_of(const char *name, const char *members, unsigned seconds)
{
	char content[1024];

	snprintf(content, sizeof(content), "{\"v\":1,\"kind\":\"start\",\"t\":0.000000%s}\n" NOTE_LINE,
	         members);
	make(name, content, seconds);
}

/* Only a process of this machine, whose number is known and free now, is gone. */
TEST(what_is_not_known_of_a_writer)
{
	pid_t gone = dead();
	char members[512];

	snprintf(members, sizeof(members), ",\"host\":\"%s\",\"pid\":%d", machine.nodename, gone);
	make_of("bootless-1.jsonl", members, 100);
	snprintf(members, sizeof(members), ",\"host\":\"%s\",\"pid\":%d", machine.nodename, getpid());
	make_of("here-1.jsonl", members, 101);
	snprintf(members, sizeof(members), ",\"host\":\"%s\",\"pid\":%d", machine.nodename, -gone);
	make_of("group-1.jsonl", members, 102);
	snprintf(members, sizeof(members), ",\"host\":\"%s\"", machine.nodename);
	make_of("numberless-1.jsonl", members, 103);
	snprintf(members, sizeof(members), ",\"pid\":%d", gone);
	make_of("hostless-1.jsonl", members, 104);
	make_log("far-1.jsonl", "elsewhere", boot, gone, NOTE_LINE, 105);
	keep(0);
	assert_false(there("bootless-1.jsonl"));
	assert_true(there("here-1.jsonl") && there("group-1.jsonl") && there("numberless-1.jsonl"));
	assert_true(there("hostless-1.jsonl") && there("far-1.jsonl"));
}

/* The exit line is looked for in the last 16 KiB. */
TEST(an_exit_line_far_from_the_end)
{
	static char content[64 * 1024];
	size_t notes = 16 * 1024 / strlen(NOTE_LINE) - strlen(EXIT_LINE) / strlen(NOTE_LINE);

	for (unsigned far = 0; far < 2; far++) {
		strcpy(content, start_of("elsewhere", "b", 1));
		strcat(content, EXIT_LINE);
		for (size_t i = 0; i < notes - 2 + far * 10; i++)
			strcat(content, NOTE_LINE);
		make(far ? "far-1.jsonl" : "near-1.jsonl", content, 100);
	}
	keep(0);
	assert_false(there("near-1.jsonl"));
	assert_true(there("far-1.jsonl"));
}

/* Those that run do not count: so many that have ended are kept beside them. */
TEST(only_the_finished_count)
{
	make_log("a-1.jsonl", machine.nodename, boot, getpid(), "", 1);
	make_log("b-1.jsonl", machine.nodename, boot, getpid(), "", 2);
	make_ended("c-1.jsonl", 3);
	make_ended("d-1.jsonl", 4);
	make_ended("e-1.jsonl", 5);
	keep(2);
	assert_true(there("a-1.jsonl") && there("b-1.jsonl"));
	assert_true(there("c-1.jsonl") && there("d-1.jsonl"));
	assert_false(there("e-1.jsonl"));
}

/* Its writer has it locked, wherever that process is and whatever it wrote last. */
TEST(what_is_written_stays)
{
	struct spill_log_file writer;

	make_ended("w-1.jsonl", 100);
	assert_null(spill_log_file_open(&writer, in_folder("w-1.jsonl")));
	keep(0);
	assert_true(there("w-1.jsonl"));
	spill_log_file_close(&writer);
	keep(0);
	assert_false(there("w-1.jsonl"));
}

/* One that cannot be opened is none that has ended: another is kept in its place. */
static void unreadable_body(void)
{
	CHECK(geteuid() != 0 ||
	      (chown(folder, 65534, 65534) == 0 && setgid(65534) == 0 && setuid(65534) == 0));
	make_ended("a-1.jsonl", 1);
	make_ended("b-1.jsonl", 2);
	make_ended("c-1.jsonl", 3);
	CHECK(chmod(in_folder("a-1.jsonl"), 0) == 0);
	keep(1);
	CHECK(there("a-1.jsonl") && there("b-1.jsonl") && !there("c-1.jsonl"));
}

TEST(what_cannot_be_opened_does_not_count)
{
	in_child(unreadable_body);
}

static long pages(void)
{
	FILE *file = fopen("/proc/self/statm", "r");
	long count = 0;

	assert_non_null(file);
	assert_int_equal(fscanf(file, "%ld", &count), 1);
	fclose(file);
	return count;
}

TEST(what_was_needed_to_look_is_given_back)
{
	long before;

	make_ended("a-1.jsonl", 1);
	make_ended("b-1.jsonl", 2);
	keep(2);
	before = pages();
	for (unsigned i = 0; i < 10; i++)
		keep(1);
	assert_int_equal(pages(), before);
}
