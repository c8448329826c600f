/* Libraries that export the device memory which they allocate: the list is exporters.def. */
#ifndef SPILL_EXPORTER_H
#define SPILL_EXPORTER_H

struct spill_exporter {
	const char *caller, *what;
};

/* The row for a library, by its path as loaded ("" for the main program, which is never one); NULL if there is none. */
const struct spill_exporter *spill_exporter_find(const char *path);

#endif
