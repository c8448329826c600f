/* What /proc/PID tells of a process that chose its own name. */
#include "unit.h"

#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "process_status.h"

TEST(a_name_hides_no_field)
{
	static const char *const names[] = {"llama-server", "a b", ") Z 1", "(", "))", ""};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		char stat[256];

		snprintf(stat, sizeof(stat), "4711 (%s) S 1 4711 4711 0 -1", names[i]);
		assert_memory_equal(cli_stat_field(stat, 3), "S ", 2);
		assert_memory_equal(cli_stat_field(stat, 4), "1 ", 2);
		assert_string_equal(cli_stat_field(stat, 8), "-1");
		assert_null(cli_stat_field(stat, 9));
	}
}

TEST(a_text_that_is_no_stat_has_no_fields)
{
	static const char *const texts[] = {"", "4711 (a", "4711 (a)", "Z"};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		assert_null(cli_stat_field(texts[i], 3));
}

TEST(the_own_namespace_comes_last)
{
	static const struct {
		const char *status;
		uint64_t pid;
	} cases[] = {
	    {"Name:\ta\nPid:\t7\nNSpid:\t7\nNSpgid:\t9\n", 7},
	    {"Name:\ta\nNSpid:\t4711\t12\t1\nNSpgid:\t9\n", 1},
	    {"Name:\ta\nNSpid:\t4711\t12", 12},
	    /* An old kernel, and what no kernel writes. */
	    {"Name:\ta\nPid:\t7\n", 5},
	    {"Name:\ta\nNSpid:\t\n9\n", 5},
	    {"Name:\tNSpid: 3\n", 5},
	    {"Name:\ta\nNSpid:\t-3\n", 5},
	    {"", 5},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_int_equal(cli_status_own_pid(cases[i].status, 5), cases[i].pid);
}

TEST(a_process_has_ended_once_it_is_a_zombie)
{
	int pid = fork();

	if (!pid)
		_exit(0);
	assert_int_equal(waitid(P_PID, (id_t)pid, &(siginfo_t){0}, WEXITED | WNOWAIT), 0);
	assert_true(cli_process_has_ended(pid));
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_true(cli_process_has_ended(pid));
	assert_false(cli_process_has_ended(getpid()));
}
