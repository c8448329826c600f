#include "hazards.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "glob.h"

static const struct spill_hazard rows[] = {
#define HAZARD(object, open, what) {object, open, what},
#define EXPORTED(variable, above, what)
#include "hazards.def"
};

static const struct spill_exporter exporters[] = {
#define EXPORTER(caller, what) {caller, what},
#define KEEPER(caller)
#include "exporters.def"
};

static const char *const keepers[] = {
#define EXPORTER(caller, what)
#define KEEPER(caller) caller,
#include "exporters.def"
};

_Static_assert(sizeof(rows) / sizeof(rows[0]) <= 32, "rows fit the bits of an unsigned");

static const struct {
	const char *variable;
	uint64_t above;
	const char *what;
} exported[] = {
#define HAZARD(object, open, what)
#define EXPORTED(variable, above, what) {variable, above, what},
#include "hazards.def"
};

unsigned spill_hazard_rows(void)
{
	return sizeof(rows) / sizeof(rows[0]);
}

const struct spill_hazard *spill_hazard_row(unsigned row)
{
	return &rows[row];
}

int spill_hazard_find(const char *path)
{
	const char *name = spill_file_name(path);

	for (unsigned row = 0; row < spill_hazard_rows(); row++) {
		if (spill_glob(rows[row].object, name))
			return (int)row;
	}
	return -1;
}

bool spill_hazard_opened(const struct spill_hazard *row, const char *path)
{
	return !strncmp(path, row->open, strlen(row->open));
}

/* Is the text a number above `above`? False if it is no number. */
static bool is_above(const char *text, uint64_t above)
{
	uint64_t number = 0;

	if (!*text || text[strspn(text, "0123456789")])
		return false;
	for (; *text && number < UINT32_MAX; text++)
		number = number * 10 + (uint64_t)(*text - '0');
	return number > above;
}

const char *spill_hazard_exported(const char *variable)
{
	const char *equals = strchr(variable, '=');
	size_t length = equals ? (size_t)(equals - variable) : 0;

	for (size_t i = 0; equals && i < sizeof(exported) / sizeof(exported[0]); i++) {
		if (strlen(exported[i].variable) == length &&
		    !memcmp(exported[i].variable, variable, length) &&
		    is_above(equals + 1, exported[i].above))
			return exported[i].what;
	}
	return NULL;
}

const struct spill_exporter *spill_exporter_find(const char *path)
{
	for (size_t i = 0; i < sizeof(exporters) / sizeof(exporters[0]); i++) {
		if (spill_glob_object(exporters[i].caller, path))
			return &exporters[i];
	}
	return NULL;
}

bool spill_exporter_keeps(const char *path)
{
	bool keeps = false;

	for (size_t i = 0; i < sizeof(keepers) / sizeof(keepers[0]) && !keeps; i++)
		keeps = spill_glob_object(keepers[i], path);
	return keeps;
}
