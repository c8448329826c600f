/* The lines on stderr, written so that they never block, signal or confuse the host program. */
#ifndef SPILL_STDERR_H
#define SPILL_STDERR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "text.h"

/* Remembers the file behind fd 2. The library's constructor calls it at load. One system call. */
void spill_stderr_remember(void);

/* Writes one line after "spill: ". Drops it if the write could block or harm the program. */
void spill_stderr_line(const char *text);

/* Writes complete lines at once, so that no other line comes between. pre: length <= PIPE_BUF */
void spill_stderr_lines(const char *lines, size_t length);

/*
 * The loud line: the line on stderr at the first spill or demotion. A slow program without a
 * message is worse than a failure (pitfall 15). A caller begins the line, adds its own words, and
 * ends it. `text` writes into line[size].
 *
 * True if the line is due: once a run, or at every spill and demotion (log.stderr). `text` then
 * holds the program's name and "PART of WHOLE", two sizes in bytes.
 *
 * After the first line this writes a line of its own each time that `away`, all bytes that are off
 * the device now, has grown fourfold since the last one. So a run has at most SPILL_LOUD_LINES lines,
 * and one at its end.
 */
#define SPILL_LOUD_LINES 4
bool spill_loud_line_begin(struct spill_text *text, char *line, size_t size, uint64_t part, uint64_t whole,
                           uint64_t away);

/* Adds " (device 0 full", or "… at its limit". The end closes the bracket. */
void spill_loud_line_device(struct spill_text *text, int device, bool at_limit);

/* For a forked child, which has told nothing. */
void spill_loud_line_reset(void);

/* Adds the log's path, and writes the line. */
void spill_loud_line_end(struct spill_text *text, const char *line);

#endif
