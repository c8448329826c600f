#include <string.h>

#include "amount.h"
#include "text.h"

#define PERCENT_SCALE 1000u                   /* a percent is this many of struct spill_amount's units */
#define WHOLE ((uint64_t)100 * PERCENT_SCALE) /* 100% */

/* Six decimals of a TiB, times 10^6, fit into 64 bits. */
#define DECIMALS 6

#define THE_UNITS "units are B, KiB, MiB, GiB, TiB"

static const struct unit {
	const char *name;
	unsigned shift;
	const char *hint; /* for a unit that is nearly this one */
} units[] = {
    {"TiB", 40, "write TiB; " THE_UNITS},
    {"GiB", 30, "write GiB; " THE_UNITS},
    {"MiB", 20, "write MiB; " THE_UNITS},
    {"KiB", 10, "write KiB; " THE_UNITS},
    {"B", 0, THE_UNITS},
};

#define UNITS (sizeof(units) / sizeof(units[0]))

struct number {
	uint64_t whole;
	uint64_t decimals; /* the digits after the point as a number */
	uint64_t scale;    /* 10^(count of those digits) */
};

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Reads 12 or 12.5 at *at, and moves *at behind it. */
static const char *read_number(const char *text, struct number *number, size_t *at)
{
	size_t i = *at, start;

	*number = (struct number){.scale = 1};
	if (!is_digit(text[i]))
		return text[i] == '-' ? "it cannot be negative" : "a number must come first";
	for (; is_digit(text[i]); i++) {
		uint64_t digit = (uint64_t)(text[i] - '0');

		if (number->whole > (UINT64_MAX - digit) / 10)
			return "the number is too large";
		number->whole = number->whole * 10 + digit;
	}
	if (text[i] == '.') {
		for (start = ++i; is_digit(text[i]); i++) {
			if (i - start == DECIMALS) {
				*at = i;
				return "at most 6 decimals";
			}
			number->decimals = number->decimals * 10 + (uint64_t)(text[i] - '0');
			number->scale *= 10;
		}
		if (i == start) {
			*at = i;
			return "digits must follow the point";
		}
	}
	*at = i;
	return NULL;
}

static const char *to_percent(const struct number *number, uint64_t *value)
{
	if (number->scale > PERCENT_SCALE)
		return "a percentage has at most 3 decimals";
	if (number->whole > 100 || (number->whole == 100 && number->decimals))
		return "a percentage cannot exceed 100%";
	*value = number->whole * PERCENT_SCALE + number->decimals * (PERCENT_SCALE / number->scale);
	return NULL;
}

static const char *to_bytes(const struct number *number, unsigned shift, uint64_t *value)
{
	uint64_t part = (number->decimals << shift) / number->scale;

	if (!shift && number->scale > 1)
		return "bytes have no decimals; add a unit such as GiB";
	if (number->whole > UINT64_MAX >> shift || (number->whole << shift) > UINT64_MAX - part)
		return "the size is too large";
	*value = (number->whole << shift) + part;
	return *value == SPILL_UNLIMITED ? "the size is too large" : NULL;
}

/* 6G and 6gb mean 6GiB to most, and powers of ten to some: so they are refused, with the unit's name. */
static const char *nearest_unit(const char *unit)
{
	size_t length = strlen(unit);
	bool alike = length == 1 || (length == 2 && (unit[1] | 32) == 'b') ||
	             (length == 3 && (unit[1] | 32) == 'i' && (unit[2] | 32) == 'b');
	for (size_t i = 0; i < UNITS && alike; i++)
		if ((unit[0] | 32) == (units[i].name[0] | 32))
			return units[i].hint;
	return THE_UNITS;
}

static const char *unknown_unit(const char *unit)
{
	if (*unit == ' ' || *unit == '\t')
		return "no blank between number and unit";
	if (!strcmp(unit, "%"))
		return "a percentage has no meaning here";
	if (*unit == ',')
		return "decimals follow a point, not a comma";
	return nearest_unit(unit);
}

const char *spill_amount_parse(const char *text, unsigned allow, struct spill_amount *amount, size_t *at)
{
	struct number number;
	const char *why;

	*at = 0;
	if (!strcmp(text, "none") && !(allow & SPILL_ALLOW_NONE))
		return allow & SPILL_ALLOW_PERCENT ? "it cannot be none; the largest is 100%"
		                                   : "it must be a size; it cannot be none";
	if (!strcmp(text, "none")) {
		*amount = (struct spill_amount){SPILL_AMOUNT_BYTES, SPILL_UNLIMITED};
		return NULL;
	}
	why = read_number(text, &number, at);
	if (why)
		return why;

	const char *unit = text + *at;
	struct spill_amount read = {SPILL_AMOUNT_BYTES, 0};

	if ((allow & SPILL_ALLOW_PERCENT) && !strcmp(unit, "%")) {
		read.kind = SPILL_AMOUNT_PERCENT;
		why = to_percent(&number, &read.value);
	} else {
		size_t i = 0;

		while (i < UNITS && *unit && strcmp(unit, units[i].name))
			i++;
		if (i == UNITS)
			return unknown_unit(unit);
		why = to_bytes(&number, *unit ? units[i].shift : 0, &read.value);
	}
	if (why) {
		*at = 0;
		return why;
	}
	*amount = read;
	return NULL;
}

size_t spill_amount_format(struct spill_amount amount, char *buffer, size_t size)
{
	struct spill_text text = spill_text_begin(buffer, size);

	if (amount.kind == SPILL_AMOUNT_PERCENT) {
		uint64_t rest = amount.value % PERCENT_SCALE;

		spill_text_number(&text, amount.value / PERCENT_SCALE);
		if (rest)
			spill_text_add(&text, ".");
		for (uint64_t scale = PERCENT_SCALE / 10; rest; rest %= scale, scale /= 10) {
			spill_text_number(&text, rest / scale);
			if (scale == 1)
				break;
		}
		spill_text_add(&text, "%");
	} else if (amount.kind == SPILL_AMOUNT_NONE || amount.value == SPILL_UNLIMITED) {
		spill_text_add(&text, "none");
	} else {
		size_t i = 0;

		while (amount.value & (((uint64_t)1 << units[i].shift) - 1))
			i++; /* ends at the last row: any amount is a multiple of a byte */
		if (!amount.value)
			i = UNITS - 1;
		spill_text_number(&text, amount.value >> units[i].shift);
		if (units[i].shift)
			spill_text_add(&text, units[i].name);
	}
	return text.length;
}

static const struct time_unit {
	const char *name;
	uint64_t us;
} time_units[] = {{"h", 3600000000}, {"min", 60000000}, {"s", 1000000}, {"ms", 1000}, {"us", 1}};

#define TIME_UNITS (sizeof(time_units) / sizeof(time_units[0]))

static const char *unknown_time_unit(const char *unit)
{
	if (!*unit)
		return "a unit must follow: us, ms, s, min or h";
	if (*unit == ' ' || *unit == '\t')
		return "no blank between number and unit";
	if (*unit == ',')
		return "decimals follow a point, not a comma";
	return "units are us, ms, s, min, h";
}

const char *spill_time_parse(const char *text, uint64_t *us, size_t *at)
{
	struct number number;
	size_t i = 0;

	*at = 0;
	const char *why = read_number(text, &number, at);
	if (why)
		return why;
	while (i < TIME_UNITS && strcmp(text + *at, time_units[i].name))
		i++;
	if (i == TIME_UNITS)
		return unknown_time_unit(text + *at);

	/* Six decimals of an hour fit into 64 bits. */
	uint64_t unit = time_units[i].us, part = number.decimals * unit;

	*at = 0;
	if (part % number.scale)
		return "the smallest unit is a microsecond";
	part /= number.scale;
	if (number.whole > (UINT64_MAX - part) / unit)
		return "the time is too long";
	*us = number.whole * unit + part;
	return NULL;
}

size_t spill_time_format(uint64_t us, char *buffer, size_t size)
{
	struct spill_text text = spill_text_begin(buffer, size);
	size_t i = 2; /* 90s, not 1.5min: minutes and hours are read, but not written */

	while (us % time_units[i].us)
		i++; /* ends at the last row, the microsecond */
	spill_text_number(&text, us / time_units[i].us);
	spill_text_add(&text, time_units[i].name);
	return text.length;
}

uint64_t spill_amount_resolve(struct spill_amount amount, uint64_t whole, uint64_t none)
{
	switch (amount.kind) {
	case SPILL_AMOUNT_BYTES:
		return amount.value;
	case SPILL_AMOUNT_PERCENT:
		/* In two steps: whole * value would overflow. */
		return whole / WHOLE * amount.value + whole % WHOLE * amount.value / WHOLE;
	case SPILL_AMOUNT_NONE:
		break;
	}
	return none;
}
