#include "alloc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

void *cli_room(void *old, size_t count, size_t size)
{
	void *room = reallocarray(old, count ? count : 1, size);

	if (!room) {
		perror("spill");
		exit(CLI_FINDINGS);
	}
	return room;
}

void *cli_room_for_one(void *old, size_t used, size_t *size, size_t each)
{
	if (used < *size)
		return old;
	*size = *size ? *size * 2 : 16;
	return cli_room(old, *size, each);
}

char *cli_room_text(const char *text)
{
	size_t size = text ? strlen(text) + 1 : 0;

	return text ? memcpy(cli_room(NULL, size, 1), text, size) : NULL;
}
