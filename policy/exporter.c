#include "exporter.h"

#include <stddef.h>

#include "glob.h"

static const struct spill_exporter exporters[] = {
#define EXPORTER(caller, what) {caller, what},
#include "exporters.def"
};

const struct spill_exporter *spill_exporter_find(const char *path)
{
	for (size_t i = 0; i < sizeof(exporters) / sizeof(exporters[0]); i++) {
		if (spill_glob_object(exporters[i].caller, path))
			return &exporters[i];
	}
	return NULL;
}
