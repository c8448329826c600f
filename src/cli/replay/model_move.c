/* Models demotion, promotion and the reserve (demote.c, promote.c, reserve_keeper.c). */
#include <string.h>

#include "minmax.h"
#include "model.h"
#include "promote.h"
#include "reserve_keeper.h"

/* In microseconds, like times in a log. */
#define MS 1000ull

void cli_model_enlist(struct cli_model *model, struct cli_model_slot *slot, bool grows)
{
	uint32_t at = (uint32_t)(slot - model->slots);

	for (unsigned i = 0; grows && i < model->movable_count; i++) {
		struct cli_model_slot *other = &model->slots[model->movable[i]];

		other->dead |= other->run == slot->run;
	}
	slot->list_index = model->movable_count;
	model->movable[model->movable_count++] = at;
	model->devices[slot->device].movable += slot->held.device;
	model->devices[slot->device].away += slot->held.host;
	/* Nothing could be demoted for it. promote.c checks for room by the clock. */
	if (slot->held.host) {
		model->devices[slot->device].changed = true;
		model->back_us = model->now_us + SPILL_PROMOTE_LOOK_MS * MS;
	}
}

void cli_model_delist(struct cli_model *model, struct cli_model_slot *slot)
{
	uint32_t last = model->movable[--model->movable_count];

	model->movable[slot->list_index] = last;
	model->slots[last].list_index = slot->list_index;
	model->devices[slot->device].movable -= slot->held.device;
	model->devices[slot->device].away -= slot->held.host;
}

/* The begin of the chunk that ends at `end`. The device's chunks come first, then the host's. */
static uint64_t chunk_begin(const struct cli_model_slot *slot, uint64_t end)
{
	uint64_t from = end > slot->first ? slot->first : 0;

	return from + (end - from - 1) / slot->chunk * slot->chunk;
}

static uint64_t chunk_end(const struct cli_model_slot *slot, uint64_t begin)
{
	uint64_t part = begin < slot->first ? slot->first : slot->range;

	return part - begin > slot->chunk ? begin + slot->chunk : part;
}

static uint64_t returnable_bytes(const struct cli_model_slot *slot)
{
	uint64_t most = slot->range < slot->stays_from ? slot->range : slot->stays_from;

	return most > slot->held.device ? most - slot->held.device : 0;
}

/* Lists allocations that can be demoted, or promoted if `back`. */
static unsigned list_victims(struct cli_model *model, int device, bool back)
{
	unsigned count = 0;

	for (unsigned i = 0; i < model->movable_count; i++) {
		struct cli_model_slot *slot = &model->slots[model->movable[i]];

		if (slot->device == device && (back ? returnable_bytes(slot) : slot->held.device))
			model->victims[count++] = (struct spill_victim){
			    .priority = (enum spill_priority)slot->priority,
			    .bytes = slot->bytes,
			    .seq = slot->allocation + 1,
			    .dead = slot->dead,
			    .data = slot,
			};
	}
	spill_victim_mark(model->victims, count);
	return count;
}

/* Moves the next victim to `at`. Few of many are needed, so sorting would cost more. */
static struct cli_model_slot *next_victim(struct cli_model *model, unsigned at, unsigned count, bool back)
{
	struct spill_victim *list = model->victims, first;
	unsigned best = at;

	for (unsigned i = at + 1; i < count; i++) {
		if ((back ? spill_victim_compare_back : spill_victim_compare)(&list[i], &list[best]) < 0)
			best = i;
	}
	first = list[best];
	list[best] = list[at];
	list[at] = first;
	return first.data;
}

static void move_bytes(struct cli_model *model, struct cli_model_slot *slot, uint64_t bytes, bool demoted,
                       const char *reason)
{
	struct cli_model_device *device = &model->devices[slot->device];
	uint64_t out = demoted ? bytes : 0, in = demoted ? 0 : bytes;

	slot->held.device += in - out;
	slot->held.host += out - in;
	slot->charged += in - out;
	slot->charged_host += out - in;
	device->whole += in - out;
	device->movable += in - out;
	device->away += out - in;
	if (!demoted)
		model->host -= bytes;
	else
		model->spills++;
	if (model->moved)
		model->moved(model->data, slot, demoted, bytes, reason);
}

/*
 * Charges host memory for up to `count` chunks of `bytes`. Returns the number that it grants. In
 * halves, because a log may tell of an allocation with millions of chunks.
 */
static uint64_t charge_chunks(struct cli_model *model, uint64_t bytes, uint64_t count)
{
	uint64_t granted = 0;

	for (uint64_t step = count; step && granted < count; step = spill_min(step / 2, count - granted)) {
		while (step <= count - granted && !cli_model_charge_host(model, step * bytes))
			granted += step;
	}
	return granted;
}

/* Plans up to `missing` bytes from the tail and charges host memory. Returns the bytes. */
static uint64_t plan_victim(struct cli_model *model, const struct cli_model_slot *slot, uint64_t missing,
                            bool *refused)
{
	uint64_t left = slot->held.device;

	while (left && slot->held.device - left < missing && !*refused) {
		uint64_t part = left > slot->first ? slot->first : 0, size = left - chunk_begin(slot, left);
		uint64_t wanted = (missing - (slot->held.device - left) - 1) / size + 1;
		/* The last chunk of a part may be shorter than the others. */
		uint64_t count = size < slot->chunk ? 1 : spill_min(wanted, (left - part) / size);
		uint64_t granted = charge_chunks(model, size, count);

		left -= granted * size;
		*refused = granted < count;
	}
	return slot->held.device - left;
}

static void move_planned(struct cli_model *model, unsigned count, uint64_t planned, const char *reason)
{
	for (unsigned i = 0; i < count && planned; i++) {
		struct cli_model_slot *slot = model->victims[i].data;
		uint64_t bytes = slot->held.device <= planned ? slot->held.device : planned;

		planned -= bytes;
		move_bytes(model, slot, bytes, true, reason);
	}
	model->back_us = model->now_us + SPILL_PROMOTE_QUIET_MS * MS;
}

static bool demote_chunks(struct cli_model *model, int device, struct spill_shortfall missing,
                          bool part_helps, const char *reason)
{
	uint64_t planned = 0;
	bool refused = false, enough;
	unsigned count;

	if (model->devices[device].movable < (part_helps ? 1 : missing.least))
		return false;
	count = list_victims(model, device, false);
	for (unsigned i = 0; i < count && planned < missing.wanted && !refused; i++)
		planned += plan_victim(model, next_victim(model, i, count, false), missing.wanted - planned,
		                       &refused);
	enough = planned >= missing.least;
	if (enough || part_helps) {
		move_planned(model, count, planned, reason);
		model->devices[device].begun |= planned && strcmp(reason, "limit");
	} else {
		model->host -= planned;
	}
	return enough;
}

/* None where the memory is the host's (spill_reserve_leave_out). */
uint64_t cli_model_reserve(const struct cli_model *model, int device)
{
	const struct spill_policy *policy = model->setting->policy;
	unsigned capabilities = model->setting->cards[device].capabilities;

	return spill_policy_memory(policy, capabilities) == SPILL_MEMORY_INTEGRATED
	           ? 0
	           : spill_policy_device_reserve(policy, device);
}

static struct spill_shortfall shortfall_for(const struct cli_model *model, int device, uint64_t bytes)
{
	return spill_policy_shortfall(cli_model_reserve(model, device), bytes,
	                              cli_model_free_on(model, device), cli_model_held(model, device),
	                              model->setting->cards[device].limit);
}

bool cli_model_demote(struct cli_model *model, int device, uint64_t bytes, const char *reason)
{
	struct spill_shortfall missing = shortfall_for(model, device, bytes);

	if (!cli_model_may_move(model, device))
		return false;
	/* The driver refused although there seems to be room. */
	if (!missing.wanted)
		missing.least = missing.wanted = bytes;
	return demote_chunks(model, device, missing, false, reason);
}

static bool leaves_enough(const struct cli_model *model, int device, uint64_t weight)
{
	uint64_t reserve = cli_model_reserve(model, device);
	uint64_t most = model->setting->cards[device].total / SPILL_RESERVE_PART;
	uint64_t kept = reserve < most ? reserve : most;
	uint64_t free = cli_model_free_on(model, device);
	bool moves = model->devices[device].movable && cli_model_may_move(model, device);
	uint64_t part = moves ? kept / 2 : kept;

	/* The driver refuses this itself. */
	if (free < weight)
		return true;
	weight = weight > SPILL_RESERVE_BLOCK ? weight : SPILL_RESERVE_BLOCK;
	return !reserve || (free >= weight && free - weight >= part);
}

bool cli_model_leaves_reserve(struct cli_model *model, int device, uint64_t weight)
{
	struct spill_shortfall missing;

	if (!model->devices[device].begun || leaves_enough(model, device, weight))
		return true;
	missing = shortfall_for(model, device, weight > SPILL_RESERVE_BLOCK ? weight : SPILL_RESERVE_BLOCK);
	missing.least = missing.wanted;
	return cli_model_may_move(model, device) && demote_chunks(model, device, missing, false, "reserve") &&
	       leaves_enough(model, device, weight);
}

void cli_model_keep_reserve(struct cli_model *model, int device, uint64_t taken)
{
	struct cli_model_device *state = &model->devices[device];
	uint64_t before = model->spills;

	state->taken += taken;
	if (!model->movable_count || model->now_us < state->retry_us || !cli_model_may_move(model, device) ||
	    (model->now_us < state->look_us && state->taken < SPILL_RESERVE_TAKEN))
		return;
	state->taken = 0;
	state->look_us = model->now_us + SPILL_RESERVE_LOOK_MS * MS;
	if (cli_model_free_on(model, device) >= cli_model_reserve(model, device) / 2)
		return;
	demote_chunks(model, device, shortfall_for(model, device, 0), true, "reserve");
	state->retry_us = model->spills == before ? model->now_us + SPILL_RESERVE_VAIN_MS * MS : 0;
}

/* The bytes from the head on that can return into `room`. */
static uint64_t returning_bytes(const struct cli_model_slot *slot, uint64_t room)
{
	uint64_t most = spill_min(returnable_bytes(slot), room), bytes = 0, fit;

	do {
		uint64_t begin = slot->held.device + bytes;
		uint64_t size = begin < slot->range ? chunk_end(slot, begin) - begin : 0;
		uint64_t part = begin < slot->first ? slot->first : slot->range;

		/* Of the chunks of this part, whose last one may be shorter. */
		fit = size ? spill_min(most - bytes, part - begin) / size : 0;
		bytes += fit * size;
	} while (fit);
	return bytes;
}

/* The tail leaves first, so the head returns first. A smaller chunk may pass a large one. */
static bool promote_chunks(struct cli_model *model, int device)
{
	unsigned count = cli_model_room(model, device) >= CLI_GRANULE ? list_victims(model, device, true) : 0;
	bool any = false;

	for (unsigned i = 0; i < count && cli_model_room(model, device) >= CLI_GRANULE; i++) {
		struct cli_model_slot *slot = next_victim(model, i, count, true);
		uint64_t bytes = returning_bytes(slot, cli_model_room(model, device));

		if (bytes)
			move_bytes(model, slot, bytes, false, "free");
		any |= bytes > 0;
	}
	return any;
}

void cli_model_promote(struct cli_model *model)
{
	if (model->now_us < model->back_us)
		return;
	for (unsigned device = 0; device < SPILL_DEVICES; device++) {
		struct cli_model_device *state = &model->devices[device];

		if (state->away && state->changed && cli_model_may_move(model, (int)device))
			state->changed = promote_chunks(model, (int)device);
	}
}
