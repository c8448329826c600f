/*
 * Recorded requests decided again (the replay's model.h): properties that hold for every policy,
 * and the results of small cases.
 */
#define SETUP set_up
#define TEARDOWN tear_down
#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include "model.h"
#include "promote.h"
#include "recording.h"
#include "replay.h"
#include "roll.h"

#define MIB ((uint64_t)1 << 20)
#define ALL (SPILL_CAN_SPLIT | SPILL_CAN_MOVE | SPILL_CAN_MANAGED | SPILL_CAN_HOST)
#define SLOTS 40

static struct spill_policy policy;
static struct spill_rules rules;
static struct cli_site sites[1];
static struct cli_model_setting setting;
static struct cli_model model;

static int set_up(void **data)
{
	spill_policy_default(&policy);
	policy.device_reserve = (struct spill_amount){SPILL_AMOUNT_BYTES, 0};
	memset(&rules, 0, sizeof(rules));
	sites[0] = (struct cli_site){.rules = UINT64_MAX, .known = true};
	setting = (struct cli_model_setting){.policy = &policy,
	                                     .backend = &spill_backend_cuda,
	                                     .sites = sites,
	                                     .device_count = 1,
	                                     .host = SPILL_UNLIMITED};
	setting.cards[0] =
	    (struct cli_card){.total = 64 * MIB, .limit = SPILL_UNLIMITED, .capabilities = ALL};
	cli_model_begin(&model, &setting, SLOTS);
	return 0;
}

static int tear_down(void **data)
{
	cli_model_free(&model);
	return 0;
}

static struct cli_answer ask(uint32_t slot, uint64_t bytes)
{
	struct cli_ask one = {.bytes = bytes, .allocation = slot, .slot = slot, .time_us = model.now_us + 1};
	struct cli_answer answer = cli_model_take(&model, &one);

	cli_model_settle(&model, &one);
	return answer;
}

static void give(uint32_t slot)
{
	struct cli_ask one = {.kind = CLI_ASK_FREE, .slot = slot, .time_us = model.now_us + 1};

	cli_model_take(&model, &one);
}

/* As exporting.c: plain, unless the policy insists on chunks. */
TEST(a_library_that_exports_gets_plain_memory)
{
	assert_int_equal(ask(0, 40 * MIB).place, SPILL_PLACE_MOVABLE);
	sites[0].exports = true;
	assert_int_equal(ask(1, 8 * MIB).place, SPILL_PLACE_DEVICE);
	policy.movable_enable = SPILL_SWITCH_ON;
	assert_int_equal(ask(2, 8 * MIB).place, SPILL_PLACE_MOVABLE);
}

/* As promote.c: memory that could not be wholly on the device is looked at by the clock. */
TEST(what_is_made_on_the_host_may_come_back)
{
	struct cli_model_slot *device = &model.slots[0], *host = &model.slots[1];
	device->held.device = 2 * MIB;
	host->held = (struct spill_bytes){.device = 2 * MIB, .host = 4 * MIB};
	model.now_us = 1000;
	model.back_us = 5;
	cli_model_enlist(&model, device, false);
	assert_int_equal(model.back_us, 5);
	assert_false(model.devices[0].changed);
	cli_model_enlist(&model, host, false);
	assert_int_equal(model.back_us, 1000 + SPILL_PROMOTE_LOOK_MS * 1000);
	assert_true(model.devices[0].changed);
	assert_int_equal(model.devices[0].movable, 4 * MIB);
	assert_int_equal(model.devices[0].away, 4 * MIB);
	cli_model_delist(&model, device);
	cli_model_delist(&model, host);
	assert_int_equal(model.devices[0].movable + model.devices[0].away, 0);
	assert_int_equal(model.movable_count, 0);
}

/* As the next call of the program, which looks for room that there is again. */
TEST(a_request_brings_back_what_was_demoted)
{
	assert_int_equal(ask(0, 40 * MIB).place, SPILL_PLACE_MOVABLE);
	assert_true(ask(1, 40 * MIB).served);
	assert_true(model.devices[0].away > 0);
	give(1);
	model.now_us += 1000000000;
	assert_true(ask(2, MIB).served);
	assert_int_equal(model.devices[0].away, 0);
	assert_int_equal(model.slots[0].held.device, 40 * MIB);
}

/* Without anywhere else to go it is nothing but a sum: an oracle of three lines. */
TEST(with_no_other_place_it_is_a_sum)
{
	uint64_t held[SLOTS] = {0}, sum = 0;

	policy.chain = (struct spill_fallback_chain){.count = 0};
	for (unsigned turn = 0; turn < 20000; turn++) {
		uint32_t slot = (uint32_t)roll(SLOTS);
		uint64_t room = setting.cards[0].limit < 64 * MIB ? setting.cards[0].limit
		                                                  : 64 * MIB - setting.cards[0].other;
		uint64_t bytes = MIB + 1 + roll(20 * MIB),
		         weight = (bytes + 2 * MIB - 1) / (2 * MIB) * (2 * MIB);

		if (held[slot]) {
			give(slot);
			sum -= held[slot];
			held[slot] = 0;
		} else {
			bool fits = sum + weight <= room;

			assert_int_equal(ask(slot, bytes).served, fits);
			held[slot] = fits ? weight : 0;
			sum += held[slot];
		}
		assert_int_equal(cli_model_held(&model, 0), sum);
		if (turn % 2000 == 1999) {
			setting.cards[0].limit = roll(2) ? SPILL_UNLIMITED : (10 + roll(30)) * MIB;
			setting.cards[0].other =
			    setting.cards[0].limit == SPILL_UNLIMITED ? roll(20) * MIB : 0;
		}
	}
}

static void random_rules(void)
{
	static const enum spill_rule_place places[] = {SPILL_RULE_SPLIT, SPILL_RULE_MANAGED, SPILL_RULE_HOST};

	memset(&rules, 0, sizeof(rules));
	rules.count = (unsigned)roll(3);
	for (unsigned i = 0; i < rules.count; i++) {
		struct spill_rule *rule = &rules.rule[i];

		rule->name[0] = (char)('a' + i);
		rule->set =
		    (unsigned)((roll(2) ? SPILL_RULE_HAS_SIZE : 0) | (roll(2) ? SPILL_RULE_HAS_PLACE : 0) |
		               (roll(2) ? SPILL_RULE_HAS_OVER : 0) | (roll(2) ? SPILL_RULE_HAS_CAP : 0));
		rule->least = roll(8) * MIB;
		rule->most = rule->least + roll(20) * MIB;
		rule->place = places[roll(3)];
		rule->over = places[roll(3)];
		rule->cap = roll(40) * MIB;
	}
	spill_rules_index(&rules);
	policy.rules = rules.count ? &rules : NULL;
}

static void check_sums(bool managed_on_device)
{
	const struct cli_card *card = &setting.cards[0];
	uint64_t device = 0, host = 0, charged[SPILL_RULES] = {0};

	for (unsigned i = 0; i < SLOTS; i++) {
		const struct cli_model_slot *slot = &model.slots[i];

		if (!slot->live)
			continue;
		device += slot->charged;
		host += slot->charged_host;
		if (slot->rule >= 0)
			charged[slot->rule] += slot->charged_rule;
		if (slot->chunked)
			assert_int_equal(slot->held.device + slot->held.host, slot->range);
	}
	for (unsigned place = 0; place < SPILL_PLACES; place++)
		host += model.devices[0].pools[place].made * (8 * MIB);
	assert_int_equal(cli_model_held(&model, 0), device);
	assert_int_equal(model.host, host);
	assert_true(card->limit == SPILL_UNLIMITED || device <= card->limit);
	assert_true(managed_on_device || device <= card->total - card->other);
	assert_true(host <= policy.host_limit.value);
	for (unsigned i = 0; i < rules.count; i++) {
		assert_int_equal(model.rule_used[i], charged[i]);
		assert_true(!(rules.rule[i].set & SPILL_RULE_HAS_CAP) || charged[i] <= rules.rule[i].cap);
	}
}

/* No sum passes a limit or a cap, chunks are never lost, and what is freed is gone. */
TEST(sums_hold_under_any_policy)
{
	static const unsigned can[] = {ALL, SPILL_CAN_MANAGED | SPILL_CAN_HOST,
	                               SPILL_CAN_SPLIT | SPILL_CAN_HOST};

	for (unsigned run = 0; run < 400; run++) {
		random_rules();
		policy.host_limit = (struct spill_amount){SPILL_AMOUNT_BYTES, roll(120) * MIB};
		policy.movable_enable = (enum spill_switch)roll(3);
		policy.movable_chunk.value = (2 + roll(9)) * MIB;
		setting.cards[0] = (struct cli_card){.total = 64 * MIB,
		                                     .limit = roll(2) ? SPILL_UNLIMITED : roll(64) * MIB,
		                                     .other = roll(10) * MIB,
		                                     .capabilities = can[roll(3)]};
		cli_model_reset(&model);
		for (unsigned turn = 0; turn < 200; turn++) {
			uint32_t slot = (uint32_t)roll(SLOTS);

			if (model.slots[slot].live)
				give(slot);
			else
				ask(slot, roll(4) ? 1 + roll(24 * MIB) : 1 + roll(MIB));
			model.now_us += roll(3) ? 0 : 30000;
			check_sums(true);
		}
		for (uint32_t slot = 0; slot < SLOTS; slot++)
			give(slot);
		assert_int_equal(cli_model_held(&model, 0), 0);
		assert_int_equal(model.movable_count, 0);
		assert_true(model.host <= SPILL_PLACES * 8 * MIB);
	}
}

/* The begin of the chunk that ends at `end`, from one end of the allocation to the other. */
static uint64_t begin_of(const struct cli_model_slot *slot, uint64_t end)
{
	uint64_t begin = 0, next = 0;

	while (next < end) {
		uint64_t part = next < slot->first ? slot->first : slot->range;

		begin = next;
		next = part - begin > slot->chunk ? begin + slot->chunk : part;
	}
	return begin;
}

/* One by one: from the tail, while bytes are missing and the host has room. */
static uint64_t leaves(const struct cli_model_slot *slot, uint64_t missing, uint64_t host)
{
	uint64_t left = slot->held.device;

	while (left && slot->held.device - left < missing) {
		uint64_t begin = begin_of(slot, left);

		if (left - begin > host)
			break;
		host -= left - begin;
		left = begin;
	}
	return slot->held.device - left;
}

/* From the head on, while there is room. */
static uint64_t returns(const struct cli_model_slot *slot, uint64_t room)
{
	uint64_t held = slot->held.device;

	for (uint64_t end = held + CLI_GRANULE; end <= slot->range; end += CLI_GRANULE) {
		if ((end == slot->range || begin_of(slot, end + 1) == end) && end - slot->held.device <= room)
			held = end;
	}
	return held - slot->held.device;
}

/* Chunks are counted in one step, however many there are. */
TEST(chunks_move_as_if_one_by_one)
{
	for (unsigned run = 0; run < 3000; run++) {
		struct cli_model_slot *slot = &model.slots[0];
		uint64_t missing = (1 + roll(32)) * CLI_GRANULE, host = roll(40) * CLI_GRANULE, leaving;

		cli_model_reset(&model);
		assert_int_equal(ask(0, (33 + roll(31)) * MIB).place, SPILL_PLACE_MOVABLE);
		slot->first = roll(slot->range / CLI_GRANULE + 1) * CLI_GRANULE;
		slot->chunk = (1 + roll(9)) * CLI_GRANULE;
		policy.host_limit = (struct spill_amount){SPILL_AMOUNT_BYTES, host};
		leaving = leaves(slot, missing, host);
		if (cli_model_demote(&model, 0, cli_model_free_on(&model, 0) + missing, "oom"))
			assert_int_equal(slot->held.host, leaving);
		else
			assert_true(leaving < missing && !slot->held.host);
		assert_int_equal(model.host, slot->held.host);
		/* Others take a part of the room. */
		setting.cards[0].other = roll(20) * MIB;
		leaving = returns(slot, cli_model_room(&model, 0));
		host = slot->held.host;
		model.devices[0].changed = true;
		model.now_us += 1000000000;
		cli_model_promote(&model);
		assert_int_equal(host - slot->held.host, leaving);
		assert_int_equal(model.host, slot->held.host);
		setting.cards[0].other = 0;
	}
}

/* As in a log that lacks a free: the new one has the number of the old, here on a device that nobody knows. */
TEST(what_is_replaced_is_gone)
{
	struct cli_ask unknown = {.bytes = MIB, .device = -1};

	assert_true(ask(0, 40 * MIB).served);
	assert_true(cli_model_take(&model, &unknown).served);
	assert_int_equal(cli_model_held(&model, 0), 0);
	assert_int_equal(model.movable_count, 0);
	assert_true(ask(0, 40 * MIB).served);
	assert_true(ask(0, 30 * MIB).served);
	assert_int_equal(cli_model_held(&model, 0), 30 * MIB);
}

/* As reserve_keeper.c, before anything can move: exactly the reserve may stay, and not a byte less. */
TEST(what_would_take_the_reserve_waits)
{
	policy.device_reserve = (struct spill_amount){SPILL_AMOUNT_BYTES, 6 * MIB};
	setting.cards[0].other = 54 * MIB;
	assert_true(cli_model_leaves_reserve(&model, 0, 10 * MIB)); /* nothing has spilled yet */
	model.devices[0].begun = true;
	assert_true(cli_model_leaves_reserve(&model, 0, 4 * MIB));
	assert_false(cli_model_leaves_reserve(&model, 0, 4 * MIB + 1));
	/* All that is free takes the reserve. The driver itself refuses a byte more. */
	assert_false(cli_model_leaves_reserve(&model, 0, 10 * MIB));
	assert_true(cli_model_leaves_reserve(&model, 0, 10 * MIB + 1));
	/* A small one may take a whole block. */
	setting.cards[0].other = 56 * MIB;
	assert_true(cli_model_leaves_reserve(&model, 0, 1));
	setting.cards[0].other++;
	assert_false(cli_model_leaves_reserve(&model, 0, 1));
	/* At most an eighth of the device. */
	policy.device_reserve.value = 32 * MIB;
	setting.cards[0].other = 50 * MIB;
	assert_true(cli_model_leaves_reserve(&model, 0, 6 * MIB));
	assert_false(cli_model_leaves_reserve(&model, 0, 6 * MIB + 1));
}

/* A half of the reserve is enough where memory can move, and what it lacks is demoted. */
TEST(a_reserve_is_half_of_it_where_memory_moves)
{
	policy.device_reserve = (struct spill_amount){SPILL_AMOUNT_BYTES, 8 * MIB};
	assert_int_equal(ask(0, 40 * MIB).place, SPILL_PLACE_MOVABLE);
	model.devices[0].begun = true;
	setting.cards[0].other = 14 * MIB;
	assert_true(cli_model_leaves_reserve(&model, 0, 6 * MIB));
	assert_int_equal(model.devices[0].away, 0);
	assert_true(cli_model_leaves_reserve(&model, 0, 6 * MIB + 1));
	assert_true(model.devices[0].away > 0);
	/* A half of a byte is none: all that is free can be taken. */
	policy.device_reserve.value = 1;
	setting.cards[0].other += cli_model_free_on(&model, 0) - 6 * MIB;
	uint64_t away = model.devices[0].away;
	assert_true(cli_model_leaves_reserve(&model, 0, 6 * MIB));
	assert_int_equal(model.devices[0].away, away);
}

/* A block is used as long as a request fits exactly, and is one again when all of it is free. */
TEST(a_shared_block_is_used_up)
{
	struct cli_shared shared = {0};

	assert_int_equal(cli_shared_find(&shared, MIB), 0);
	assert_false(cli_shared_is_made(&shared, 0));
	cli_shared_take(&shared, 0, MIB, 2 * MIB);
	assert_int_equal(cli_shared_find(&shared, MIB + 1), 1);
	assert_int_equal(cli_shared_find(&shared, MIB), 0);
	cli_shared_take(&shared, 0, MIB, 2 * MIB);
	assert_int_equal(cli_shared_find(&shared, 1), 1);
	assert_int_equal(shared.made, 1);
	cli_shared_give(&shared, 0, MIB, 2 * MIB, 1);
	assert_int_equal(shared.empty, 0);
	cli_shared_give(&shared, 0, MIB, 2 * MIB, 1);
	assert_int_equal(shared.empty, 1);
	assert_int_equal(cli_shared_trim(&shared, 2 * MIB), 1);
	assert_int_equal(shared.made + shared.empty, 0);
	free(shared.left);
}

TEST(growth_is_that_of_the_site_that_asks)
{
	policy.movable_enable = SPILL_SWITCH_ON;
	setting.cards[0].total = 256 * MIB;
	assert_int_equal(ask(0, 40 * MIB).place, SPILL_PLACE_MOVABLE);
	assert_int_equal(ask(1, 50 * MIB).place, SPILL_PLACE_MOVABLE);
	assert_true(spill_growth_would(&model.growth, 1, 0, 60 * MIB));
	assert_false(spill_growth_would(&model.growth, 1, 0, 50 * MIB));
}

/* What may move keeps within the limit, too, to the byte. */
TEST(a_limit_holds_for_what_moves)
{
	policy.movable_enable = SPILL_SWITCH_ON;
	setting.cards[0].total = 256 * MIB;
	setting.cards[0].limit = 100 * MIB;
	policy.host_limit = (struct spill_amount){SPILL_AMOUNT_BYTES, 0}; /* so that nothing makes way */
	assert_int_equal(ask(0, 60 * MIB).place, SPILL_PLACE_MOVABLE);
	assert_false(ask(1, 42 * MIB).served);
	/* However small it is, it is mapped in steps of 2 MiB. */
	policy.movable_min = (struct spill_amount){SPILL_AMOUNT_BYTES, MIB};
	setting.cards[0].limit = 61 * MIB;
	assert_false(ask(1, MIB).served);
	setting.cards[0].limit = 100 * MIB;
	assert_int_equal(ask(2, 40 * MIB).place, SPILL_PLACE_MOVABLE);
	assert_int_equal(cli_model_held(&model, 0), 100 * MIB);
	assert_false(ask(3, 2 * MIB).served);
}

/* What refuses: the limit only if the request is larger than what is left of it. */
TEST(host_memory_is_refused_by_what_lacks)
{
	setting.host = 12 * MIB;
	policy.host_limit = (struct spill_amount){SPILL_AMOUNT_BYTES, 10 * MIB};
	policy.host_reserve = (struct spill_amount){SPILL_AMOUNT_BYTES, 4 * MIB};
	assert_string_equal(cli_model_charge_host(&model, 10 * MIB), "host.reserve");
	assert_string_equal(cli_model_charge_host(&model, 10 * MIB + 1), "host.limit");
	assert_string_equal(cli_model_charge_host(&model, 8 * MIB + 1), "host.reserve");
	assert_null(cli_model_charge_host(&model, 8 * MIB));
	assert_int_equal(model.host, 8 * MIB);
	/* What is charged is no longer available: the rest is the reserve. */
	assert_string_equal(cli_model_charge_host(&model, 1), "host.reserve");
	policy.host_reserve.value -= MIB;
	assert_string_equal(cli_model_charge_host(&model, MIB + 1), "host.reserve");
	assert_null(cli_model_charge_host(&model, MIB));
}

/* Nobody knows how long a refused request would have been held: what the policy would give it is given back at once. */
TEST(what_was_refused_holds_nothing)
{
	for (unsigned kind = CLI_ASK_ALLOC; kind <= CLI_ASK_REFUSED_BY_HOST; kind++) {
		struct cli_ask one = {.kind = (enum cli_ask_kind)kind,
		                      .bytes = 40 * MIB,
		                      .slot = 1,
		                      .time_us = model.now_us + 1};
		bool refused = kind == CLI_ASK_REFUSED || kind == CLI_ASK_REFUSED_BY_HOST;

		assert_int_equal(cli_model_take(&model, &one).served, kind != CLI_ASK_FREE);
		assert_int_equal(cli_model_held(&model, 0), kind == CLI_ASK_ALLOC ? 40 * MIB : 0);
		assert_int_equal(model.devices[0].peak, 40 * MIB);
		assert_false(refused && model.host);
	}
	/* So the next one finds the whole device. */
	assert_int_equal(ask(2, 64 * MIB).held.device, 64 * MIB);
}

/* A host whose size nobody told has no reserve to keep, and no part that is a limit. */
TEST(a_host_of_unknown_size_has_its_limit_only)
{
	policy.host_reserve = (struct spill_amount){SPILL_AMOUNT_BYTES, 4 * MIB};
	policy.host_limit = (struct spill_amount){SPILL_AMOUNT_NONE, 0};
	assert_null(cli_model_charge_host(&model, (uint64_t)1 << 40));
	assert_null(cli_model_charge_host(&model, (uint64_t)1 << 40));
	policy.host_limit = (struct spill_amount){SPILL_AMOUNT_BYTES, ((uint64_t)2 << 40) + MIB};
	assert_string_equal(cli_model_charge_host(&model, MIB + 1), "host.limit");
	assert_null(cli_model_charge_host(&model, MIB));
	/* A part of it is a limit only where its size is known. */
	policy.host_limit = (struct spill_amount){SPILL_AMOUNT_PERCENT, 50000};
	assert_null(cli_model_charge_host(&model, MIB));
	setting.host = 12 * MIB;
	model.host = 0;
	assert_string_equal(cli_model_charge_host(&model, 6 * MIB + 1), "host.limit");
	assert_null(cli_model_charge_host(&model, 6 * MIB));
}

/* Host memory that the program itself asks for is taken from what the host has. */
TEST(host_memory_of_the_program_counts)
{
	struct cli_ask own = {.bytes = 5 * MIB, .memory = CLI_MEMORY_HOST};

	assert_int_equal(cli_model_take(&model, &own).place, SPILL_PLACE_HOST);
	assert_int_equal(model.host, 5 * MIB);
	assert_int_equal(model.host_peak, 5 * MIB);
	give(0);
	own.bytes = 2 * MIB;
	assert_true(cli_model_take(&model, &own).served);
	assert_int_equal(model.host, 2 * MIB);
	assert_int_equal(model.host_peak, 5 * MIB);
	give(0);
	assert_int_equal(model.host, 0);
}

/* Managed memory that is on the device at once makes way for what the driver must hold there. */
TEST(managed_memory_makes_way)
{
	memset(&rules, 0, sizeof(rules));
	rules.count = 1;
	rules.rule[0] = (struct spill_rule){.name = "a",
	                                    .set = SPILL_RULE_HAS_SIZE | SPILL_RULE_HAS_PLACE,
	                                    .most = 20 * MIB,
	                                    .place = SPILL_RULE_MANAGED};
	spill_rules_index(&rules);
	policy.rules = &rules;
	policy.movable_enable = SPILL_SWITCH_OFF;
	policy.chain = (struct spill_fallback_chain){.count = 0};
	policy.advice.prefetch_below = (struct spill_amount){SPILL_AMOUNT_BYTES, 20 * MIB};
	/* Only below that size. */
	assert_int_equal(ask(0, 20 * MIB).place, SPILL_PLACE_MANAGED);
	assert_int_equal(cli_model_held(&model, 0), 0);
	assert_int_equal(ask(1, 16 * MIB).place, SPILL_PLACE_MANAGED);
	assert_int_equal(cli_model_held(&model, 0), 16 * MIB);
	assert_int_equal(cli_model_free_on(&model, 0), 48 * MIB);
	assert_int_equal(ask(2, 50 * MIB).place, SPILL_PLACE_DEVICE);
	assert_int_equal(model.devices[0].resident, 14 * MIB);
	assert_int_equal(cli_model_free_on(&model, 0), 0);
	give(1);
	assert_int_equal(model.devices[0].managed, 0);
	assert_int_equal(model.devices[0].resident, 0);
	assert_int_equal(cli_model_free_on(&model, 0), 14 * MIB);
	/* All of it leaves even for what does not fit then. */
	assert_int_equal(ask(1, 10 * MIB).place, SPILL_PLACE_MANAGED);
	assert_false(ask(3, 24 * MIB).served);
	assert_int_equal(model.devices[0].resident, 0);
	policy.rules = NULL;
}

/* A damaged log can ask for no bytes. No block is made for these, which nothing would give back. */
TEST(no_bytes_hold_nothing)
{
	for (uint32_t slot = 0; slot < 3; slot++)
		assert_true(ask(slot, 0).served);
	assert_int_equal(model.devices[0].blocks.made, 0);
	assert_int_equal(cli_model_held(&model, 0), 0);
}

/* The smallest limits against all others. */
TEST(the_smallest_limit_is_the_smallest)
{
	for (unsigned run = 0; run < 60; run++) {
		struct cli_ask asks[30];
		struct cli_recording recording = {.asks = asks, .ask_count = 30, .slots = 30};
		struct cli_replay_run replay = {.recording = &recording};
		bool ran = false;

		random_rules();
		policy.host_limit = (struct spill_amount){SPILL_AMOUNT_BYTES, 30 * MIB};
		for (uint32_t i = 0; i < 30; i++)
			asks[i] =
			    i % 3 == 2
			        ? (struct cli_ask){.kind = CLI_ASK_FREE, .slot = i - 1}
			        : (struct cli_ask){.bytes = MIB + roll(6 * MIB), .allocation = i, .slot = i};
		replay.setting = setting;
		cli_replay_limits(&replay);
		if (!replay.limit_count || !replay.runs)
			continue;
		for (uint64_t limit = replay.limits[0].least; limit + 2 * MIB >= replay.limits[0].least;
		     limit -= 2 * MIB) {
			setting.cards[0].total = (uint64_t)1 << 50;
			setting.cards[0].limit = limit;
			cli_model_reset(&model);
			for (unsigned i = 0; i < 30; i++)
				cli_model_take(&model, &asks[i]);
			assert_int_equal(model.refused == 0, limit == replay.limits[0].least);
			ran = true;
			if (!limit)
				break;
		}
		assert_true(ran);
		setting.cards[0].limit = replay.limits[0].all;
		cli_model_reset(&model);
		for (unsigned i = 0; i < 30; i++)
			cli_model_take(&model, &asks[i]);
		assert_int_equal(model.refused, 0);
	}
}

/* -- memory that sum lines tell ---------------------------------------------------------------- */

static struct cli_recording recording;

static void sum_line(const struct cli_name *caller, uint64_t live, uint64_t device)
{
	cli_recording_event(
	    &recording,
	    &(struct cli_event){
	        .kind = CLI_EVENT_SUM,
	        .level = {.device = device, .device_peak = device, .all = device, .all_peak = device},
	        .sum = {.live = live, .peak = live},
	        .api = caller,
	        .caller = caller});
}

static uint64_t level_of(uint64_t key)
{
	const struct cli_live_entry *entry = cli_live_find(&recording.levels, key);
	return entry ? entry->held.device : 0;
}

/* The other call site has freed what the device lacks, and no more than that. */
TEST(a_site_that_grows_leaves_the_others_what_is_theirs)
{
	static struct cli_name one = {.id = 0, .length = 1, .text = "1"};
	static struct cli_name other = {.id = 1, .length = 1, .text = "2"};
	uint64_t key = 0;
	cli_recording_begin(&recording, &spill_backend_cuda);
	sum_line(&one, 10 * MIB, 10 * MIB);
	for (size_t i = 0; i < recording.levels.size; i++)
		if (recording.levels.entries[i].held.device == 10 * MIB)
			key = recording.levels.entries[i].seq;
	sum_line(&other, 20 * MIB, 30 * MIB);
	assert_int_equal(level_of(key), 10 * MIB);
	sum_line(&other, 25 * MIB, 32 * MIB);
	assert_int_equal(level_of(key), 7 * MIB);
	cli_recording_free(&recording);
}
