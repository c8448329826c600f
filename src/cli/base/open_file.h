/* How a command opens what it reads: a FIFO or device in a folder of logs must not keep it waiting. */
#ifndef SPILL_CLI_OPEN_FILE_H
#define SPILL_CLI_OPEN_FILE_H

enum cli_files {
	CLI_REGULAR,         /* for files found in a folder */
	CLI_REGULAR_OR_PIPE, /* for a file that the user names: /dev/stdin and <(zcat x.gz) are pipes */
};

/* Returns a descriptor, or -1 and sets *error. It never opens a file of another kind. */
int cli_open(const char *path, enum cli_files files, int *error);

/* Says what *error means. Valid until the next call. */
const char *cli_open_text(int error);

#endif
