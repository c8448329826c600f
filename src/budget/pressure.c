#include "pressure.h"

#include <stdint.h>
#include <string.h>

#include "policy.h"
#include "small_file.h"

/* In hundredths of a percent. */
#define MOST 2000

/* "20.05" is 2005: no strtod, which follows the host's locale. */
static uint64_t hundredths(const char *text)
{
	uint64_t whole = spill_small_file_number(text);
	if (whole > 100)
		return 0; /* nonsense */
	const char *point = strpbrk(text, ". \n");
	whole *= 100;
	if (!point || *point != '.')
		return whole;
	for (uint64_t unit = 10; unit && point[1] >= '0' && point[1] <= '9'; unit /= 10)
		whole += unit * (uint64_t)(*++point - '0');
	return whole;
}

/* The line is `full avg10=0.00 avg60=0.00 avg300=0.00 total=0`, behind one that begins with `some`. */
bool spill_pressure_on(const char *path)
{
	char text[256];
	if (!spill_small_file_read(path, text, sizeof(text)))
		return false;
	const char *full = strncmp(text, "full ", 5) == 0 ? text : strstr(text, "\nfull ");
	const char *share = full ? strstr(full, "avg10=") : NULL;
	return share && hundredths(share + strlen("avg10=")) > MOST;
}
