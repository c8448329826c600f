/* Rows of exported memory, shared by share.c, which exports, and share_import.c. core.h says how it works. */
#ifndef SIM_SHARE_H
#define SIM_SHARE_H

#include "core_internal.h"

#define ROWS 1024
#define MAGIC "spill-simulator"

enum kind { ROW_PLAIN = 1, ROW_PHYSICAL, ROW_POOL, ROW_BLOCK };

struct row {
	_Atomic uint64_t id; /* 0: free */
	uint32_t kind;
	uint64_t offset, bytes; /* the part of the file */
	uint64_t start, asked;  /* PLAIN, BLOCK: the allocation in it */
	uint64_t of;            /* PLAIN, BLOCK: the allocation's id in its process */
	uint64_t pool;          /* BLOCK: the row of its pool */
	_Alignas(16) char face[SIM_FACE];
};

/* What a file is recognised by, at the begin of its table. */
struct file_name {
	char magic[16];
	uint64_t file; /* a random number */
};

struct table {
	struct file_name name;
	uint32_t pid;
	enum sim_place place;
	int32_t which; /* the installed device */
	struct row rows[ROWS];
};

/*
 * Is it a file of simulated memory, and that of the table, if there is one? The program may have closed the
 * descriptor, and opened another file with its number.
 */
bool share_is_file(int descriptor, const struct table *table);
uint64_t share_offset(const struct file *file, const struct sim_physical *physical);
/* A descriptor with a description of its own. -1: none. */
int share_open_again(uint32_t pid, int descriptor);
/* The same with a lock on the part of a row. The descriptor's position is `slot`. -1: the row has ended. */
int share_open_row(uint32_t pid, int descriptor, const struct table *table, const struct row *row,
                   unsigned slot);

#endif
