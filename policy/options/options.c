#include <string.h>

#include "option_kind.h"

static const struct spill_option rows[] = {
#define OPTION(section, key, kind, field, words, initial, meaning) \
	{section, key, SPILL_OPTION_##kind, words, initial, meaning, offsetof(struct spill_policy, field)},
#include "options.def"
};

/* Keys of [device] that `[device N]` takes, too. Each has an array in the policy. */
static const struct device_option {
	const char *key;
	size_t offset;
} device_options[] = {
#define DEVICE(key, field) {key, offsetof(struct spill_policy, field)},
#include "options.def"
};

#define DEVICE(key, field) \
	_Static_assert(sizeof(((struct spill_policy *)0)->field) == \
	                   SPILL_DEVICES * sizeof(struct spill_amount), \
	               "a DEVICE row is an array of amounts");
#include "options.def"

static int slot_device(unsigned slot)
{
	return slot < SPILL_OPTIONS ? -1 : (int)((slot - SPILL_OPTIONS) % SPILL_DEVICES);
}

/* pre: a slot of `[device N]` */
static const struct device_option *slot_device_option(unsigned slot)
{
	return &device_options[(slot - SPILL_OPTIONS) / SPILL_DEVICES];
}

const struct spill_option *spill_option_row(unsigned slot)
{
	unsigned row = 0;

	if (slot < SPILL_OPTIONS)
		return &rows[slot];
	while (strcmp(rows[row].section, "device") || strcmp(rows[row].key, slot_device_option(slot)->key))
		row++;
	return &rows[row];
}

const void *spill_option_value(const struct spill_policy *policy, unsigned slot)
{
	const char *base = (const char *)policy;

	if (slot < SPILL_OPTIONS)
		return base + rows[slot].offset;
	return base + slot_device_option(slot)->offset +
	       (size_t)slot_device(slot) * sizeof(struct spill_amount);
}

void *spill_option_field(struct spill_policy *policy, unsigned slot)
{
	return (char *)policy + ((const char *)spill_option_value(policy, slot) - (const char *)policy);
}

void spill_option_name(unsigned slot, char *buffer, size_t size)
{
	struct spill_text text = spill_text_begin(buffer, size);
	int device = slot_device(slot);

	spill_text_add(&text, spill_option_row(slot)->section);
	if (device >= 0)
		spill_text_format(&text, " %u", (unsigned)device);
	spill_text_format(&text, ".%s", spill_option_row(slot)->key);
}

/* ASCII only: toupper follows the host program's locale. */
static void add_upper(struct spill_text *text, const char *word)
{
	for (; *word; word++) {
		char c = *word >= 'a' && *word <= 'z' ? (char)(*word - 'a' + 'A') : *word;

		spill_text_bytes(text, &c, 1);
	}
}

void spill_option_variable(unsigned slot, char *buffer, size_t size)
{
	const struct spill_option *row = spill_option_row(slot);
	struct spill_text text = spill_text_begin(buffer, size);
	int device = slot_device(slot);

	spill_text_add(&text, "SPILL_");
	if (strcmp(row->section, "spill")) {
		add_upper(&text, row->section);
		spill_text_add(&text, "_");
	}
	if (device >= 0)
		spill_text_format(&text, "%u_", (unsigned)device);
	add_upper(&text, row->key);
}
