/*
 * The loud line: what a person sees on stderr at the first spill or demotion, because slowness that nobody announced is worse
 * than a failure (pitfall 15). A caller begins it, adds its own words, and ends it.
 */
#ifndef SPILL_LOUD_LINE_H
#define SPILL_LOUD_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "text.h"

/*
 * True if the line is due: once a run, or at every spill and demotion (log.stderr). `text` then writes into line[size], and
 * begins with the program's name and the two sizes.
 */
bool spill_loud_line_begin(struct spill_text *text, char *line, size_t size, uint64_t part, uint64_t whole);

/* " (device 0 full", or at its limit; the end closes the bracket. */
void spill_loud_line_device(struct spill_text *text, int device, bool at_limit);

/* Adds the log's path, and writes the line. */
void spill_loud_line_end(struct spill_text *text, const char *line);

#endif
