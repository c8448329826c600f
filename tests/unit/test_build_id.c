/* Build ids in notes, which may be damaged. */
#include "unit.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "build_id.h"

static unsigned char notes[512];
static size_t notes_size;

static void add_note(uint32_t type, const char *name, const char *content, uint32_t size)
{
	const Elf64_Nhdr header = {.n_namesz = (uint32_t)strlen(name) + 1, .n_descsz = size, .n_type = type};

	memcpy(notes + notes_size, &header, sizeof(header));
	notes_size += sizeof(header);
	memcpy(notes + notes_size, name, header.n_namesz);
	notes_size += (header.n_namesz + 3) / 4 * 4;
	memcpy(notes + notes_size, content, size);
	notes_size += (size + 3) / 4 * 4;
}

/* From a copy of exactly this length, so that a sanitizer sees a byte read outside. "": none. */
static const char *found(size_t size)
{
	static char build_id[SPILL_BUILD_ID];
	unsigned char *copy = malloc(size ? size : 1);

	assert_non_null(copy);
	memcpy(copy, notes, size);
	if (!spill_build_id_find(copy, size, build_id))
		build_id[0] = '\0';
	free(copy);
	return build_id;
}

static void begin(void)
{
	memset(notes, 0, sizeof(notes));
	notes_size = 0;
}

TEST(found_among_other_notes)
{
	begin();
	add_note(NT_GNU_ABI_TAG, "GNU", "0123456789abcde", 16);
	add_note(NT_GNU_BUILD_ID, "Else", "abc", 3);
	add_note(NT_GNU_BUILD_ID, "GNU", "\x00\x7f\xff\x1", 4);
	assert_string_equal(found(notes_size), "007fff01");
}

TEST(notes_cut_anywhere)
{
	begin();
	add_note(NT_GNU_PROPERTY_TYPE_0, "GNU", "0123456", 8);
	add_note(NT_GNU_BUILD_ID, "GNU", "\x01\x02\x03\x04", 4);
	for (size_t size = 0; size < notes_size; size++)
		assert_string_equal(found(size), "");
	assert_string_equal(found(notes_size), "01020304");
}

TEST(the_last_note_may_end_without_padding)
{
	begin();
	add_note(NT_GNU_BUILD_ID, "GNU", "\x01\x02\x03\x04\x05", 5);
	assert_string_equal(found(notes_size - 3), "0102030405");
	assert_string_equal(found(notes_size - 4), "");
}

TEST(lengths_that_cannot_be)
{
	char content[40] = "";

	begin();
	add_note(NT_GNU_BUILD_ID, "GNU", content, 0);
	add_note(NT_GNU_BUILD_ID, "GNU", content, 33);
	assert_string_equal(found(notes_size), "");
	add_note(NT_GNU_BUILD_ID, "GNU", content, 32);
	assert_int_equal(strlen(found(notes_size)), SPILL_BUILD_ID - 1);
	for (unsigned member = 0; member < 2; member++) {
		begin();
		add_note(NT_GNU_BUILD_ID, "GNU", content, 4);
		memset(notes + member * 4, 0xff, 4);
		assert_string_equal(found(notes_size), "");
	}
}
