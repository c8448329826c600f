/* A number of a text, read in another way than small_file.c does. */
#ifndef FUZZ_NUMBER_H
#define FUZZ_NUMBER_H

#include <stdint.h>
#include <string.h>

/* At the start of the text, behind blanks. UINT64_MAX: there is none, or it is too large. */
static inline uint64_t fuzz_number(const char *text)
{
	__extension__ unsigned __int128 sum = 0;
	const char *digits = text + strspn(text, " \t");
	size_t count = strspn(digits, "0123456789");

	for (size_t i = 0; i < count && sum <= UINT64_MAX; i++)
		sum = sum * 10 + (unsigned)(digits[i] - '0');
	return count && sum < UINT64_MAX - 5 ? (uint64_t)sum : UINT64_MAX; /* the last few are refused, too */
}

#endif
