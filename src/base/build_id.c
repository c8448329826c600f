#include "build_id.h"

#include <elf.h>
#include <string.h>

#include "minmax.h"

static void put_hex(char *to, const unsigned char *bytes, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		*to++ = "0123456789abcdef"[bytes[i] >> 4];
		*to++ = "0123456789abcdef"[bytes[i] & 15];
	}
	*to = '\0';
}

/* Names and contents of notes begin at multiples of 4. */
static size_t padded(size_t size)
{
	return (size + 3) / 4 * 4;
}

static bool is_build_id(const Elf64_Nhdr *note, const unsigned char *name)
{
	return note->n_type == NT_GNU_BUILD_ID && note->n_namesz == sizeof(ELF_NOTE_GNU) &&
	       memcmp(name, ELF_NOTE_GNU, sizeof(ELF_NOTE_GNU)) == 0 && note->n_descsz > 0 &&
	       note->n_descsz <= (SPILL_BUILD_ID - 1) / 2;
}

bool spill_build_id_find(const void *notes, size_t size, char build_id[SPILL_BUILD_ID])
{
	const unsigned char *at = notes;
	Elf64_Nhdr note;

	while (size >= sizeof(note)) {
		memcpy(&note, at, sizeof(note));
		at += sizeof(note);
		size -= sizeof(note);
		size_t name = padded(note.n_namesz);
		if (name > size || note.n_descsz > size - name)
			return false;
		if (is_build_id(&note, at)) {
			put_hex(build_id, at + name, note.n_descsz);
			return true;
		}
		at += name;
		size -= name;
		size_t content = spill_min(padded(note.n_descsz), size); /* the last one may end unpadded */
		at += content;
		size -= content;
	}
	return false;
}
