/* Small files of the kernel: read whole or not at all, and the number at their start. */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fake_libc.h"
#include "policy.h"
#include "small_file.h"

static const char *content;

/* Every file has this content. */
static bool open_content(long arguments[6], long *result)
{
	*result = memfd_create("file", MFD_CLOEXEC);
	assert_int_equal(pwrite((int)*result, content, strlen(content), 0), strlen(content));
	return true;
}

static bool read_content(const char *now, char *text, size_t size)
{
	content = now;
	fake_libc[FAKE_open64].hook = open_content;
	bool is = spill_small_file_read("/x", text, size);
	int error = errno;
	fake_libc_reset();
	errno = error;
	return is;
}

TEST(a_file_that_is_longer_than_the_room_is_cut)
{
	char text[] = "?????";
	assert_true(read_content("abcdef", text, 4));
	assert_string_equal(text, "abc");
	assert_int_equal(text[4], '?');
	assert_true(read_content("ab", text, sizeof(text)));
	assert_string_equal(text, "ab");
}

/* A program may have closed its stdin. */
TEST(a_file_with_the_number_0_is_closed)
{
	char text[8];
	int before = dup(STDIN_FILENO);
	close(STDIN_FILENO);
	assert_true(spill_small_file_read("/proc/self/comm", text, sizeof(text)));
	assert_int_equal(fcntl(STDIN_FILENO, F_GETFD), -1);
	if (before >= 0)
		assert_int_equal(dup2(before, STDIN_FILENO), STDIN_FILENO);
	close(before);
}

TEST(an_empty_file_is_no_error)
{
	char text[] = "???";
	errno = ENOENT;
	assert_false(read_content("", text, sizeof(text)));
	assert_int_equal(errno, 0);
	assert_string_equal(text, "");
}

static void assert_not_read(enum fake_libc_call call, unsigned calls, int error)
{
	char text[] = "???";
	content = "abc";
	fake_libc[FAKE_open64].hook = open_content;
	fake_libc_fail(call, 1, FAKE_LIBC_FOR_EVER, error);
	assert_false(spill_small_file_read("/x", text, sizeof(text)));
	assert_int_equal(errno, error);
	assert_int_equal(fake_libc[call].calls, calls);
	assert_string_equal(text, "");
	fake_libc_reset();
}

TEST(a_file_that_cannot_be_read)
{
	assert_not_read(FAKE_open64, 1, ENOENT);
	assert_not_read(FAKE_read, 1, EIO);
	assert_not_read(FAKE_open64, 2, EMFILE); /* also by a child of ours */
}

/* A child has the numbers of stdin at least. */
TEST(a_file_is_read_where_all_descriptors_are_in_use)
{
	char text[8];
	fake_libc_fail(FAKE_open64, 1, 1, EMFILE);
	assert_true(spill_small_file_read("/proc/self/comm", text, sizeof(text)));
	assert_int_equal(fake_libc[FAKE_open64].calls, 2);
	assert_int_equal(errno, 0);
	fake_libc_reset();
}

TEST(numbers)
{
	static const struct {
		const char *text;
		uint64_t number;
	} cases[] = {{"0", 0},
	             {"12\n", 12},
	             {" \t 34 5", 34},
	             {"9:", 9},
	             {"90/", 90},
	             {"18446744073709551609", UINT64_MAX - 6},
	             {"18446744073709551610", SPILL_UNLIMITED},
	             {"184467440737095516090", SPILL_UNLIMITED},
	             {"max", SPILL_UNLIMITED},
	             {":", SPILL_UNLIMITED},
	             {"/", SPILL_UNLIMITED},
	             {"\n1", SPILL_UNLIMITED},
	             {"-1", SPILL_UNLIMITED},
	             {"", SPILL_UNLIMITED}};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		if (spill_small_file_number(cases[i].text) != cases[i].number)
			fail_msg("%s", cases[i].text);
}
