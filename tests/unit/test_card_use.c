/* Who uses a card, by a management library that is made here (management.c). */
#include "unit.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "card_use.h"
#include "management.h"

/* It is beside this program. The loader then finds it by its name, and no other. */
static struct management *management(void)
{
	static struct management *told;
	char path[PATH_MAX];

	if (told)
		return told;
	ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 1);
	assert_true(length > 0);
	path[length] = '\0';
	strcpy(strrchr(path, '/') + 1, "libnvidia-ml.so.1");
	void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	assert_non_null(library);
	told = dlsym(library, "management");
	assert_non_null(told);
	return told;
}

static struct management *begin(void)
{
	struct management *told = management();

	*told = (struct management){.begun = told->begun};
	return told;
}

TEST(free_bytes)
{
	struct management *told = begin();

	/* Another's card is not asked about, so nothing begins. */
	assert_true(cli_card_free("1234") == UINT64_MAX);
	assert_int_equal(told->begun + told->asked, 0);
	told->free = 77;
	assert_int_equal(cli_card_free("GPU-1"), 77);
	assert_true(cli_card_free("GPU-2") == UINT64_MAX);
	told->memory = NVML_ERROR_NOT_SUPPORTED;
	assert_true(cli_card_free("GPU-1") == UINT64_MAX);
	assert_int_equal(told->begun, 1);
	assert_int_equal(told->asked, 3);
}

static void add(struct management *told, unsigned kind, unsigned pid, unsigned long long bytes)
{
	told->list[kind][told->count[kind]++] = (nvmlProcessInfo_t){.pid = pid, .usedGpuMemory = bytes};
}

TEST(the_one_with_most_is_first)
{
	struct management *told = begin();
	struct cli_card_user users[CLI_CARD_USERS];
	/* Numbers that no process has. */
	static const unsigned expected[] = {1u << 30 | 3, 1u << 30 | 4, 1u << 30 | 2, 1u << 30 | 5,
	                                    1u << 30 | 1};
	enum { COUNT = 5 };

	add(told, 0, expected[4], UINT64_MAX); /* not known */
	add(told, 0, expected[3], 10);
	add(told, 0, expected[1], 30);
	add(told, 1, expected[0], 40);
	add(told, 1, expected[1], 30); /* it draws, too */
	add(told, 1, expected[2], 10);
	for (unsigned room = 0; room <= COUNT + 1; room++) {
		unsigned count = room < COUNT ? room : COUNT;

		memset(users, 0, sizeof(users));
		assert_int_equal(cli_card_users("GPU-1", users, room), count);
		for (unsigned i = 0; i < count; i++)
			assert_int_equal(users[i].pid, expected[i]);
		assert_int_equal(users[count].pid, 0);
	}
	assert_int_equal(users[0].bytes, 40);
	assert_true(users[4].bytes == UINT64_MAX);
	assert_string_equal(users[0].name, "");
	assert_int_equal(cli_card_users("GPU-2", users, 8), 0);
	/* A list that cannot be had leaves the other. */
	told->users[1] = NVML_ERROR_NOT_SUPPORTED;
	assert_int_equal(cli_card_users("GPU-1", users, 8), 3);
	assert_int_equal(users[0].pid, expected[1]);
	told->users[1] = NVML_SUCCESS;
	told->users[0] = NVML_ERROR_NOT_SUPPORTED;
	assert_int_equal(cli_card_users("GPU-1", users, 8), 3);
	assert_int_equal(users[0].pid, expected[0]);
}

TEST(as_many_as_there_are)
{
	struct management *told = begin();
	struct cli_card_user users[2 * CLI_CARD_USERS];

	for (unsigned i = 0; i < CLI_CARD_USERS; i++) {
		add(told, 0, 1u << 30 | i, 1);
		add(told, 1, 1u << 30 | 1024 | i, 1);
	}
	assert_int_equal(cli_card_users("GPU-1", users, 2 * CLI_CARD_USERS), 2 * CLI_CARD_USERS);
	assert_int_equal(users[0].pid, 1u << 30);
}

/* Numbers are the machine's, so in a container they are nobody's. */
TEST(names)
{
	struct management *told = begin();
	struct cli_card_user user;
	char space[64] = "", text[CLI_CARD_USER_TEXT];

	assert_true(readlink("/proc/self/ns/pid", space, sizeof(space) - 1) > 0);
	add(told, 0, (unsigned)getpid(), 5);
	assert_int_equal(cli_card_users("GPU-1", &user, 1), 1);
	assert_string_equal(user.name, strcmp(space, "pid:[4026531836]") ? "" : "test_card_use");
	user = (struct cli_card_user){3112, UINT64_MAX, "python3"};
	assert_string_equal(cli_card_user_text(&user, text), "python3 (pid 3112)");
	user.bytes = 1 << 20;
	assert_string_equal(cli_card_user_text(&user, text), "python3 (pid 3112) 1.00 MiB");
	user.name[0] = '\0';
	assert_string_equal(cli_card_user_text(&user, text), "pid 3112 1.00 MiB");
}
