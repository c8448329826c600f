/*
 * Amounts and times as people write them: 4.5GiB, 512MiB, 75%, plain bytes. Units are binary: KiB
 * is 1024 bytes, then MiB, GiB, TiB. GB and G are refused, because many readers take them as 10^9.
 */
#ifndef SPILL_AMOUNT_H
#define SPILL_AMOUNT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SPILL_UNLIMITED UINT64_MAX

/* An amount as the user wrote it: unset, bytes, or a share of a whole that is known later. */
enum spill_amount_kind { SPILL_AMOUNT_NONE, SPILL_AMOUNT_BYTES, SPILL_AMOUNT_PERCENT };

struct spill_amount {
	enum spill_amount_kind kind;
	uint64_t value; /* bytes, or thousandths of a percent (75% is 75000) */
};

/* The spellings that an option takes beside a size. */
enum spill_amount_allow {
	SPILL_ALLOW_PERCENT = 1u << 0, /* 0% to 100%, at most three decimals */
	SPILL_ALLOW_NONE = 1u << 1, /* "none": BYTES with SPILL_UNLIMITED, so that it can override a limit */
};

/*
 * Reads the whole of `text`. Returns NULL, or the reason why it is wrong (static text, the end of a
 * sentence: "…: no unit"). *at is then the offset of the wrong byte.
 */
const char *spill_amount_parse(const char *text, unsigned allow, struct spill_amount *amount, size_t *at);

/* Writes the shortest exact spelling, and returns its length. pre: size >= 24 */
size_t spill_amount_format(struct spill_amount amount, char *buffer, size_t size);

/* Bytes of `amount` of a `whole`; `none` if it is unset. */
uint64_t spill_amount_resolve(struct spill_amount amount, uint64_t whole, uint64_t none);

/*
 * Times: 250ms, 60s, 1.5min. The units are us, ms, s, min and h; a unit is required. Reads the
 * whole of `text` into microseconds, and returns as spill_amount_parse does.
 */
const char *spill_time_parse(const char *text, uint64_t *us, size_t *at);

/* Writes s, ms or us, the largest exact unit, and returns the length. pre: size >= 24 */
size_t spill_time_format(uint64_t us, char *buffer, size_t size);

#endif
