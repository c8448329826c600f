/* Numbers by chance that are the same in every run (xorshift64). */
#ifndef ROLL_H
#define ROLL_H

#include <stdint.h>

#define ROLL_BEGIN 88172645463325252u

static uint64_t roll_state = ROLL_BEGIN;

static inline uint64_t roll_any(void)
{
	roll_state ^= roll_state << 13;
	roll_state ^= roll_state >> 7;
	roll_state ^= roll_state << 17;
	return roll_state;
}

static inline uint64_t roll(uint64_t below)
{
	return roll_any() % below;
}

#endif
