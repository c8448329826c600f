/*
 * card: who uses an NVIDIA card, by the management library (NVML API Reference Guide). It makes no
 * context on the card. The library stays loaded.
 */
#ifndef SPILL_CLI_CARD_USE_H
#define SPILL_CLI_CARD_USE_H

#include <stdint.h>

struct cli_card_user {
	unsigned pid;
	uint64_t bytes; /* on the card; UINT64_MAX: not known */
	char name[20];  /* as in /proc/PID/comm; "": not known */
};

#define CLI_CARD_USERS 64

/* Free bytes of the card. UINT64_MAX: not known. `uuid`: "GPU-…". */
uint64_t cli_card_free(const char *uuid);

/*
 * Processes with a context on the card, the one with most memory first. Fills at most `room`
 * entries. Returns their number; 0 also if it is not known.
 */
unsigned cli_card_users(const char *uuid, struct cli_card_user *users, unsigned room);

/* "python3 (pid 3112) 11.20 GiB": at most CLI_CARD_USER_TEXT bytes. */
#define CLI_CARD_USER_TEXT 80
const char *cli_card_user_text(const struct cli_card_user *user, char text[CLI_CARD_USER_TEXT]);

#endif
