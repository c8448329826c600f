/* Reading one policy file with the checks that its trust needs. */
#ifndef SPILL_CONFIG_FILE_H
#define SPILL_CONFIG_FILE_H

#include <stddef.h>

enum spill_config_found {
	SPILL_CONFIG_FILE_READ,
	SPILL_CONFIG_FILE_ABSENT,
	SPILL_CONFIG_FILE_BAD, /* a problem is written */
};

/*
 * Reads a regular file that belongs to the effective user or root and that nobody else can write.
 * *data is malloc'ed, the caller frees it (READ only). `problem` gets "PATH: why". A file that
 * cannot be read for the moment, because no descriptor is left for example, is waited for some
 * tenths of a second.
 */
enum spill_config_found spill_config_file_read(const char *path, char **data, size_t *size, char *problem,
                                               size_t problem_size);

#endif
