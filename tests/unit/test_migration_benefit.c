/*
 * Whether moving pays, learned from times. The cases are hostile, or measured on the H200: a GiB
 * takes 19.4 ms to copy, and as much to read once in place. A product of batch 4096 reads its
 * weights again and again, and takes 488 ms.
 */
#define SETUP setup
#include "unit.h"

#include <string.h>

#include "migration_benefit.h"
#include "minmax.h"

#define MIB (1ull << 20)
#define GIB (1ull << 30)
#define US 1000ull
#define MS (1000 * US)
#define LAST (SPILL_BENEFIT_SITES - 1)

static struct spill_migration_benefit reuse;

static int setup(void **state)
{
	memset(&reuse, 0, sizeof(reuse));
	reuse.copy_ns_per_mib = 18950; /* what the link takes: the cases here are held against that */
	return 0;
}

static uint16_t new_site(void)
{
	static uint64_t hash = 1;
	return spill_benefit_site(&reuse, hash++);
}

static void measured(uint16_t site, uint64_t on_host, uint64_t ns, unsigned times)
{
	while (times--)
		spill_benefit_add_use(&reuse, site, on_host, ns);
}

static bool pays(uint16_t site, bool moved_so_far)
{
	return spill_benefit_pays(&reuse, spill_benefit_excess(&reuse, site), moved_so_far);
}

/* Within 1 %. */
static void near(uint64_t value, uint64_t expected)
{
	assert_in_range(value, expected - expected / 100 - 1, expected + expected / 100 + 1);
}

/* -- sites -- */

static uint64_t mixed(uint64_t number)
{
	number = (number ^ number >> 31) * 0xbf58476d1ce4e5b9u;
	return number ^ number >> 29;
}

TEST(a_site_is_found_again)
{
	static const uint64_t hashes[] = {1, 2, 3, UINT64_MAX, 1ull << 63, 1ull << 32};
	uint16_t sites[6];
	for (unsigned i = 0; i < 6; i++)
		sites[i] = spill_benefit_site(&reuse, hashes[i]);
	for (unsigned i = 0; i < 6; i++) {
		assert_int_equal(spill_benefit_site(&reuse, hashes[i]), sites[i]);
		assert_true(sites[i] < LAST);
		for (unsigned j = 0; j < i; j++)
			assert_int_not_equal(sites[i], sites[j]);
	}
	/* 0 is a hash as well, and is taken for 1. */
	uint16_t zero = spill_benefit_site(&reuse, 0);
	assert_int_equal(spill_benefit_site(&reuse, 0), zero);
	assert_int_equal(spill_benefit_site(&reuse, 12345), spill_benefit_site(&reuse, 12345));
	for (uint64_t hash = 2; hash < 2 * SPILL_BENEFIT_SITES; hash++)
		assert_int_not_equal(spill_benefit_site(&reuse, hash), zero);
}

/* All keep their entries, and newcomers to a full table share the last one. */
TEST(a_full_table_has_one_site_for_the_rest)
{
	static uint16_t first[20 * SPILL_BENEFIT_SITES];
	static bool taken[SPILL_BENEFIT_SITES];
	unsigned known = 0, until_last = 0;
	memset(taken, 0, sizeof(taken));
	for (unsigned i = 0; i < 20 * SPILL_BENEFIT_SITES; i++) {
		first[i] = spill_benefit_site(&reuse, mixed(i + 1));
		assert_true(first[i] < SPILL_BENEFIT_SITES);
		if (first[i] == LAST) {
			until_last = until_last ? until_last : i;
			continue;
		}
		assert_false(taken[first[i]]);
		taken[first[i]] = true;
		known++;
	}
	assert_int_equal(known, LAST);
	assert_true(until_last > 1500);
	for (unsigned i = 0; i < 20 * SPILL_BENEFIT_SITES; i++)
		assert_int_equal(spill_benefit_site(&reuse, mixed(i + 1)), first[i]);
	/* The last is a site like others. */
	measured(LAST, GIB, 488 * MS, 4);
	assert_true(pays(LAST, false));
}

/* -- when to time -- */

static unsigned wanted(uint16_t site, uint64_t on_host, unsigned uses, bool measure)
{
	unsigned count = 0;
	for (unsigned i = 0; i < uses; i++) {
		bool is = spill_benefit_wants_sample(&reuse, site, on_host);
		count += is;
		if (is && measure)
			spill_benefit_add_use(&reuse, site, on_host, MS);
	}
	return count;
}

TEST(the_first_few_are_timed_and_then_a_few)
{
	static const struct {
		uint64_t ns;
		unsigned one_of;
	} cases[] = {{MS / 20, 64}, {MS / 10 - 1, 64}, {MS / 10, 8}, {MS, 8}};
	for (unsigned n = 0; n < 4; n++) {
		uint16_t site = new_site();
		for (unsigned i = 0; i < 4; i++) {
			assert_true(spill_benefit_wants_sample(&reuse, site, 0));
			spill_benefit_add_use(&reuse, site, 0, cases[n].ns);
		}
		assert_int_equal(wanted(site, 0, cases[n].one_of - 4, false), 0);
		assert_int_equal(wanted(site, 0, 10 * cases[n].one_of, false), 10);
		/* The other state has its own first few. */
		assert_int_equal(wanted(site, GIB, 256, true), 4);
		assert_int_equal(wanted(site, GIB, 256, true), 1);
	}
}

/* Far longer than others with all memory on the device: it accessed memory that is not known. */
TEST(a_time_that_nothing_explains)
{
	uint16_t site = new_site();
	assert_false(spill_benefit_is_unexplained(&reuse, site, 20 * MS)); /* no other is known */
	measured(site, 0, MS / 2, 4);
	spill_benefit_add_use(&reuse, site, 0, 3 * MS / 2);
	assert_int_equal(wanted(site, 0, 16, false), 2);
	assert_true(spill_benefit_is_unexplained(&reuse, site, 20 * MS));
	assert_int_equal(wanted(site, 0, 16, false), 2); /* by itself that changes nothing */
	spill_benefit_look_closer(&reuse, site);
	assert_int_equal(wanted(site, 0, 8, false), 8); /* looked at closely for a while */
	assert_int_equal(wanted(site, 0, 16, false), 2);
	assert_false(spill_benefit_is_unexplained(&reuse, site, 4 * MS));
	/* Of short launches, what some MiB take over the link. */
	spill_benefit_add_use(&reuse, site, 0, MS / 100);
	assert_false(spill_benefit_is_unexplained(&reuse, site, MS / 2));
	assert_true(spill_benefit_is_unexplained(&reuse, site, MS));
}

/* A use every 256th of which is of the same state: both go on being timed. */
TEST(both_states_are_timed_again_when_they_alternate)
{
	uint16_t site = new_site();
	wanted(site, 0, 256, true);
	wanted(site, GIB, 256, true);
	unsigned resident = 0, in_place = 0;
	for (unsigned i = 0; i < 4 * 256; i++) {
		resident += wanted(site, 0, 1, true);
		in_place += wanted(site, GIB, 1, true);
	}
	assert_int_equal(resident, 4 * 256 / 8);
	assert_int_equal(in_place, 4);
}

/* What is asked for and never told (too short to be measured, say) does not cost for ever. */
TEST(what_is_never_told_is_asked_for_less)
{
	uint16_t site = new_site();
	assert_int_equal(wanted(site, 0, 4, false), 4);
	wanted(site, 0, 1020, false);
	assert_in_range(wanted(site, 0, 1024, false), 1, 1024 / 16);
	/* Then it is told after all: it is asked for no more than seldom. */
	measured(site, 0, MS, 4);
	assert_int_equal(wanted(site, 0, 1024, false), 1024 / 8);
}

/* -- what pays -- */

TEST(nothing_known_pays_for_nothing_alone)
{
	reuse.copy_ns_per_mib = 0;
	uint16_t site = new_site();
	assert_int_equal(spill_benefit_copy_cost(&reuse), SPILL_BENEFIT_COPY_NS_PER_MIB);
	assert_true(spill_benefit_excess(&reuse, site) == spill_benefit_copy_cost(&reuse));
	assert_false(pays(site, false));
	assert_false(pays(site, true));
	/* On a faster link both are faster. */
	for (unsigned i = 0; i < 100; i++)
		spill_benefit_add_copy(&reuse, GIB, 3 * MS);
	assert_true(spill_benefit_excess(&reuse, site) == spill_benefit_copy_cost(&reuse));
	near(spill_benefit_excess(&reuse, site), 3 * MS / 1024);
}

/* Read once a token: the link's time in place. Whatever is known of it, in whatever order. */
TEST(a_decode_loop_never_pays)
{
	uint16_t site = new_site(), other = new_site();
	for (unsigned i = 0; i < 1000; i++) {
		measured(site, GIB, 19200 * US + i % 7 * 30 * US, 1);
		assert_false(pays(site, false));
	}
	measured(site, 0, 240 * US, 1);
	assert_false(pays(site, false));
	assert_false(pays(site, true));
	near(spill_benefit_excess(&reuse, site), (19290 - 240) * US / 1024);
	measured(other, 0, 240 * US, 4);
	assert_false(pays(other, false));
	measured(other, 512 * MIB, 9700 * US, 4);
	assert_false(pays(other, false));
	assert_false(pays(other, true));
}

TEST(a_product_of_batch_4096_pays)
{
	uint16_t site = new_site();
	measured(site, GIB, 488 * MS, 1);
	assert_true(pays(site, false));
	measured(site, 0, 4800 * US, 4);
	assert_true(pays(site, false));
	assert_true(pays(site, true));
	near(spill_benefit_excess(&reuse, site), (488000 - 4800) * US / 1024);
}

/* Two kernels that read it once in one stay cost twice the copy; a single one does not pay. */
TEST(two_that_read_once_pay_together)
{
	uint16_t one = new_site(), two = new_site();
	measured(one, GIB, 19400 * US, 4);
	measured(two, GIB, 19400 * US, 4);
	uint64_t sum = spill_benefit_excess(&reuse, one) + spill_benefit_excess(&reuse, two);
	assert_true(spill_benefit_pays(&reuse, sum, false));
	assert_false(pays(one, false));
	uint16_t unknown = new_site();
	assert_true(spill_benefit_pays(&reuse, 2 * spill_benefit_excess(&reuse, unknown), false));
}

TEST(it_pays_from_a_fifth_more_on)
{
	uint64_t cost = spill_benefit_copy_cost(&reuse);
	assert_int_equal(cost % 5, 0);
	assert_true(spill_benefit_pays(&reuse, cost / 5 * 6, false));
	assert_false(spill_benefit_pays(&reuse, cost / 5 * 6 - 1, false));
	assert_true(spill_benefit_pays(&reuse, cost + 1, true));
	assert_false(spill_benefit_pays(&reuse, cost, true));
	assert_false(spill_benefit_pays(&reuse, 0, true));
	assert_true(spill_benefit_pays(&reuse, 1ull << 63, false));
	assert_true(spill_benefit_pays(&reuse, UINT64_MAX, false));
	assert_true(spill_benefit_pays(&reuse, UINT64_MAX, true));
}

/*
 * Times that waver about a bound change nothing: a chunk that moves goes on moving, and one that
 * stays goes on staying.
 */
TEST(it_changes_its_mind_only_beyond_the_hysteresis)
{
	uint16_t site = new_site();
	bool moved = false;
	unsigned changes = 0;
	for (unsigned i = 0; i < 1000; i++) {
		measured(site, GIB, (i % 2 ? 31000 : 23000) * US, 1);
		bool now = pays(site, moved);
		changes += now != moved;
		moved = now;
	}
	assert_true(changes <= 1);
	measured(site, GIB, 40 * MS, 50);
	assert_true(pays(site, false));
	measured(site, GIB, 22 * MS, 50);
	assert_false(pays(site, false));
	assert_true(pays(site, true));
	measured(site, GIB, 15 * MS, 50);
	assert_false(pays(site, true));
}

/*
 * 100 ms of arithmetic with 64 MiB on host that it hardly touches: in place it looks like a gain until it
 * was measured without.
 */
TEST(a_resident_time_takes_back_a_wrong_gain)
{
	uint16_t site = new_site();
	measured(site, 64 * MIB, 100 * MS, 4);
	assert_true(pays(site, false));
	measured(site, 0, 100 * MS, 1);
	assert_false(pays(site, true));
	assert_true(spill_benefit_excess(&reuse, site) == 0);
	/* Never below 0, though it happens to be faster in place. */
	measured(site, 0, 103 * MS, 4);
	assert_true(spill_benefit_excess(&reuse, site) == 0);
	/* The other order does not fall for it at all. */
	uint16_t other = new_site();
	measured(other, 0, 100 * MS, 1);
	measured(other, 64 * MIB, 100 * MS + 500 * US, 1);
	assert_false(pays(other, false));
}

/* -- means -- */

/* Layers of different sizes share a site: what a MiB costs is the same whichever comes last. */
TEST(how_much_is_on_host_does_not_matter)
{
	uint16_t site = new_site();
	measured(site, 0, 5 * MS, 4);
	for (unsigned i = 0; i < 300; i++) {
		uint64_t mib = i % 3 ? 64 : 2048;
		measured(site, mib * MIB, 5 * MS + mib * 50 * US, 1);
		near(spill_benefit_excess(&reuse, site), 50 * US);
	}
	assert_int_equal(reuse.sites[site].in_place.odd, 0);
}

TEST(a_mean_forgets)
{
	uint16_t site = new_site();
	measured(site, 0, 10 * MS, 1000);
	measured(site, 0, 20 * MS, 5);
	assert_in_range(reuse.sites[site].resident_ns, 13 * MS, 17 * MS);
	measured(site, 0, 20 * MS, 45);
	near(reuse.sites[site].resident_ns, 20 * MS);
	/* The first few count the same. */
	uint16_t other = new_site();
	measured(other, GIB, 10 * MS, 1);
	measured(other, GIB, 20 * MS, 1);
	measured(other, GIB, 30 * MS, 1);
	near(reuse.sites[other].in_place_ns, 20 * MS);
}

TEST(an_outlier_moves_a_mean_less)
{
	static const uint64_t odd[] = {8, 1000, UINT64_MAX / MS};
	for (unsigned i = 0; i < 3; i++) {
		uint16_t site = new_site();
		measured(site, 0, MS, 20);
		measured(site, 0, odd[i] * MS, 1);
		assert_in_range(reuse.sites[site].resident_ns, MS + 1, MS + MS / 8);
	}
	uint16_t early = new_site(), shorter = new_site();
	measured(early, GIB, 20 * MS, 1);
	measured(early, GIB, 20000 * MS, 1);
	assert_false(pays(early, false));
	measured(shorter, GIB, 488 * MS, 20);
	measured(shorter, GIB, 0, 1);
	measured(shorter, GIB, 488 * MS / 9, 1);
	assert_in_range(reuse.sites[shorter].in_place_ns, 488 * MS - 488 * MS / 20, 488 * MS - 1);
	/* Just inside, it counts in full. */
	uint16_t inside = new_site();
	measured(inside, 0, MS, 20);
	measured(inside, 0, 7 * MS, 1);
	assert_in_range(reuse.sites[inside].resident_ns, MS + MS / 2, 2 * MS);
}

/* The first measurement was the odd one, or the work has changed: three in a row are believed. */
TEST(three_outliers_in_a_row_are_the_truth)
{
	uint16_t first = new_site(), changed = new_site(), wavering = new_site();
	measured(first, GIB, 20000 * MS, 1);
	assert_true(pays(first, false));
	measured(first, GIB, 19 * MS, 3);
	assert_true(reuse.sites[first].in_place_ns == 19 * MS);
	assert_false(pays(first, true));
	measured(changed, 0, MS, 100);
	measured(changed, 0, 100 * MS, 2);
	assert_true(reuse.sites[changed].resident_ns < 2 * MS);
	measured(changed, 0, 100 * MS, 1);
	assert_true(reuse.sites[changed].resident_ns == 100 * MS);
	measured(changed, 0, 10000 * MS, 2);
	measured(changed, 0, MS, 3);
	assert_true(reuse.sites[changed].resident_ns == MS);
	/* Neither what is too short beside what is too long, nor with others between. */
	measured(wavering, 0, MS, 100);
	for (unsigned i = 0; i < 3; i++) {
		measured(wavering, 0, 100 * MS, 2);
		measured(wavering, 0, 10 * US, 2);
	}
	for (unsigned i = 0; i < 3; i++) {
		measured(wavering, 0, 100 * MS, 2);
		measured(wavering, 0, MS, 1);
	}
	assert_in_range(reuse.sites[wavering].resident_ns, MS / 2, 4 * MS);
}

TEST(the_cost_is_learned)
{
	reuse.copy_ns_per_mib = 0;
	spill_benefit_add_copy(&reuse, 0, 5 * MS);
	assert_true(spill_benefit_copy_cost(&reuse) == SPILL_BENEFIT_COPY_NS_PER_MIB);
	/* The first also made what moves need. */
	spill_benefit_add_copy(&reuse, 64 * MIB, 1000 * MS);
	assert_in_range(spill_benefit_copy_cost(&reuse), SPILL_BENEFIT_COPY_NS_PER_MIB,
	                SPILL_BENEFIT_COPY_NS_PER_MIB * 5 / 4);
	for (unsigned i = 0; i < 100; i++)
		spill_benefit_add_copy(&reuse, (i % 5 + 1) * GIB, (i % 5 + 1) * 22 * MS);
	near(spill_benefit_copy_cost(&reuse), 22 * MS / 1024);
	assert_false(spill_benefit_pays(&reuse, 26 * MS / 1024, false));
	assert_true(spill_benefit_pays(&reuse, 27 * MS / 1024, false));
	/* A link of another kind, ten times as fast. */
	for (unsigned i = 0; i < 3; i++)
		spill_benefit_add_copy(&reuse, GIB, 2 * MS);
	near(spill_benefit_copy_cost(&reuse), 2 * MS / 1024);
}

/*
 * The first exchanges of a program, and some later ones, are slow (measured, H200, us of 128 MiB).
 * That is no reason to leave a chunk on the host where it costs 40 us a MiB.
 */
TEST(slow_moves_now_and_then_are_no_verdict)
{
	static const uint64_t us[] = {5678, 4410, 9871, 3793,  3764, 3794, 3770,
	                              3761, 4672, 3779, 10040, 3559, 7920};
	reuse.copy_ns_per_mib = 0;
	for (unsigned i = 0; i < sizeof(us) / sizeof(*us); i++) {
		spill_benefit_add_copy(&reuse, 128 * MIB, us[i] * US);
		assert_true(spill_benefit_pays(&reuse, 40 * US, true));
	}
}

/* In a program whose moves stay slow now and then, that is what they cost. */
TEST(moves_that_stay_slow_now_and_then_cost_the_mean)
{
	uint64_t most = 0, least = UINT64_MAX;
	reuse.copy_ns_per_mib = 0;
	for (unsigned i = 0; i < 1000; i++) {
		spill_benefit_add_copy(&reuse, 128 * MIB, (i % 5 ? 4 : 12) * MS);
		uint64_t cost = spill_benefit_copy_cost(&reuse);
		assert_true(i > 64 || cost < 45 * US);
		most = spill_max(most, i < 500 ? 0 : cost);
		least = spill_min(least, i < 500 ? least : cost);
	}
	/* 5.6 ms are 43.75 us a MiB. One sample of 94 does not change the verdict. */
	assert_in_range(least, 42 * US, 44 * US);
	assert_in_range(most, 43 * US, 46 * US);
}

/* A cost by which nothing moves is not measured any more, so it is forgotten, each time later. */
TEST(a_cost_that_stops_all_moves_is_doubted)
{
	uint64_t now = 1000 * MS, pause = 10000 * MS;
	reuse.copy_ns_per_mib = 0;
	for (unsigned round = 0; round < 3; round++, pause *= 2) {
		for (unsigned i = 0; i < 3; i++)
			spill_benefit_add_copy(&reuse, 64 * MIB, 64 * MS);
		near(spill_benefit_copy_cost(&reuse), MS);
		spill_benefit_doubt_copies(&reuse, now);
		spill_benefit_doubt_copies(&reuse, now += pause - 1);
		near(spill_benefit_copy_cost(&reuse), MS);
		/* A new sample confirms it. */
		spill_benefit_add_copy(&reuse, 64 * MIB, 64 * MS);
		spill_benefit_doubt_copies(&reuse, now += 1);
		spill_benefit_doubt_copies(&reuse, now += pause - 1);
		near(spill_benefit_copy_cost(&reuse), MS);
		spill_benefit_doubt_copies(&reuse, now += 1);
		assert_true(spill_benefit_copy_cost(&reuse) == SPILL_BENEFIT_COPY_NS_PER_MIB);
	}
	/* So is a lead that stops them. */
	spill_benefit_add_lead(&reuse, 64 * MIB, 640 * MS);
	assert_true(spill_benefit_copy_cost(&reuse) > MS);
	spill_benefit_doubt_copies(&reuse, now += 1);
	spill_benefit_doubt_copies(&reuse, now += pause);
	assert_true(spill_benefit_copy_cost(&reuse) == SPILL_BENEFIT_COPY_NS_PER_MIB);
	/* What allows moves is kept. */
	spill_benefit_add_copy(&reuse, GIB, 4 * MS);
	for (unsigned i = 0; i < 9; i++)
		spill_benefit_doubt_copies(&reuse, now += 1000000 * MS);
	assert_true(spill_benefit_copy_cost(&reuse) < SPILL_BENEFIT_COPY_NS_PER_MIB);
}

/* The two parts of the cost are learned apart from each other. */
TEST(a_lead_is_a_part_of_the_cost)
{
	uint64_t copies_alone, usual = SPILL_BENEFIT_COPY_NS_PER_MIB;
	spill_benefit_add_copy(&reuse, GIB, 1024 * usual / 2);
	copies_alone = spill_benefit_copy_cost(&reuse);
	memset(&reuse, 0, sizeof(reuse));
	spill_benefit_add_lead(&reuse, 0, MS); /* tells nothing */
	assert_true(spill_benefit_copy_cost(&reuse) == usual);
	for (unsigned i = 0; i < 100; i++)
		spill_benefit_add_lead(&reuse, GIB, 1024 * 2 * usual);
	near(spill_benefit_copy_cost(&reuse), 3 * usual);
	spill_benefit_add_copy(&reuse, GIB, 1024 * usual / 2);
	near(spill_benefit_copy_cost(&reuse), copies_alone + 2 * usual);
}

/* One kernel, three operands: read again and again, read once, not at all. */
TEST(operands_are_told_apart)
{
	enum { AGAIN = 10, ONCE, NEVER, NEW };
	uint16_t site = new_site();
	measured(site, 0, 200 * US, 4);
	for (unsigned i = 0; i < 6; i++) {
		static const uint64_t us[] = {10500, 840, 205};
		for (unsigned key = AGAIN; key < NEW; key++) {
			measured(site, 32 * MIB, us[key - AGAIN] * US, 1);
			spill_benefit_add_chunk_use(&reuse, site, key, 32 * MIB, us[key - AGAIN] * US);
		}
	}
	near(spill_benefit_chunk_excess(&reuse, site, AGAIN), 10300 * US / 32);
	near(spill_benefit_chunk_excess(&reuse, site, ONCE), 640 * US / 32);
	near(spill_benefit_chunk_excess(&reuse, site, NEVER), 5 * US / 32);
	/* Of another chunk only the site is known. */
	assert_true(spill_benefit_chunk_excess(&reuse, site, NEW) == spill_benefit_excess(&reuse, site));
	assert_true(spill_benefit_chunk_excess(&reuse, new_site(), AGAIN) == spill_benefit_copy_cost(&reuse));
	/* Faster than on the device: it costs nothing. */
	spill_benefit_add_chunk_use(&reuse, site, NEW, 32 * MIB, 100 * US);
	assert_true(spill_benefit_chunk_excess(&reuse, site, NEW) == 0);
}

/* Code that was only seen with all memory on the device: a launch of 3 us cannot read a table of 80 MiB. */
TEST(what_a_launch_cannot_read_is_not_guessed)
{
	uint16_t site = new_site();
	assert_true(spill_benefit_guessed_excess(&reuse, site, 7, 80) == spill_benefit_copy_cost(&reuse));
	measured(new_site(), 0, 2 * US, 1); /* empty */
	measured(site, 0, 5 * US, 1);
	near(spill_benefit_guessed_excess(&reuse, site, 7, 80), 100 * 3 * US / 80);
	assert_true(spill_benefit_guessed_excess(&reuse, site, 7, 10) == spill_benefit_copy_cost(&reuse));
	spill_benefit_add_bound(&reuse, site, MIB, 240 * US);
	near(spill_benefit_guessed_excess(&reuse, site, 7, 80), 3 * US);
	/* It is measured from here on: a chunk by itself, others by the mean of the code. */
	spill_benefit_add_chunk_use(&reuse, site, 7, 80 * MIB, 803 * US);
	near(spill_benefit_guessed_excess(&reuse, site, 7, 80), 10 * US);
	measured(site, 80 * MIB, 1603 * US, 1);
	near(spill_benefit_guessed_excess(&reuse, site, 8, 80), 20 * US);
}

/* Before a short one was measured, a launch is not taken for empty. */
TEST(a_long_launch_is_not_empty)
{
	uint16_t site = new_site();
	measured(site, 0, 13 * US, 1);
	near(spill_benefit_guessed_excess(&reuse, site, 7, 80), 100 * 10 * US / 80);
}

/* Code that never ran on the device alone: a bound is all that is known. */
TEST(what_a_launch_cannot_have_lost_is_not_guessed)
{
	uint16_t site = new_site();
	spill_benefit_add_bound(&reuse, site, MIB, 800 * US);
	near(spill_benefit_guessed_excess(&reuse, site, 7, 80), 10 * US);
	assert_true(spill_benefit_guessed_excess(&reuse, site, 7, 2) == spill_benefit_copy_cost(&reuse));
}

TEST(a_time_is_expected)
{
	uint16_t site = new_site();
	assert_true(spill_benefit_expected(&reuse, site, 0, 0) == 0);
	near(spill_benefit_expected(&reuse, site, 64 * MIB, 20 * US), 64 * 20 * US);
	measured(site, 0, 3 * MS, 4);
	near(spill_benefit_expected(&reuse, site, 0, 20 * US), 3 * MS);
	near(spill_benefit_expected(&reuse, site, 64 * MIB, 20 * US), 3 * MS + 64 * 20 * US);
	assert_true(spill_benefit_expected(&reuse, site, UINT64_MAX, UINT64_MAX) <= 3700000 * MS);
}

/* Times that a launch took at most count until one is measured, and only for what is lost at most. */
TEST(bounds_tell_what_is_lost_at_most)
{
	uint16_t site = new_site();
	measured(site, 0, 20 * US, 1);
	assert_true(spill_benefit_most_lost(&reuse, site) == UINT64_MAX);
	uint64_t excess = spill_benefit_excess(&reuse, site);
	spill_benefit_add_bound(&reuse, site, MIB, 100 * US);
	assert_int_equal(spill_benefit_most_lost(&reuse, site), 100 * US);
	spill_benefit_add_bound(&reuse, site, MIB, 180 * US);
	assert_int_equal(spill_benefit_most_lost(&reuse, site), 110 * US);
	assert_int_equal(spill_benefit_excess(&reuse, site), excess);
	for (unsigned i = 0; i < 100; i++)
		spill_benefit_add_bound(&reuse, site, MIB, 10 * US);
	assert_in_range(spill_benefit_most_lost(&reuse, site), 10 * US, 11 * US);
	spill_benefit_add_bound(&reuse, site, MIB, UINT64_MAX);
	assert_in_range(spill_benefit_most_lost(&reuse, site), 1, 3600000 * MS);
	measured(site, MIB, 50 * US, 1);
	assert_true(spill_benefit_most_lost(&reuse, site) == UINT64_MAX);
	/* Nothing is known of one that stands for many. */
	spill_benefit_add_bound(&reuse, LAST, MIB, 10 * US);
	assert_true(spill_benefit_most_lost(&reuse, LAST) == UINT64_MAX);
}

/* No number breaks it, and what is learned then is still a time. */
TEST(any_numbers_do)
{
	static const uint64_t numbers[] = {0, 1, 1023, 1024, MIB, 1ull << 42, 1ull << 62, UINT64_MAX};
	uint16_t site = new_site();
	for (unsigned i = 0; i < 512; i++) {
		uint64_t one = numbers[i & 7], other = numbers[i >> 3 & 7];
		spill_benefit_add_use(&reuse, site, one, other);
		spill_benefit_add_use(&reuse, site, 0, numbers[i >> 6]);
		spill_benefit_add_copy(&reuse, one, other);
		spill_benefit_doubt_copies(&reuse, numbers[i >> 6]);
		assert_true(spill_benefit_copy_cost(&reuse) > 0);
		assert_true(spill_benefit_copy_cost(&reuse) < 1ull << 60);
		assert_true(spill_benefit_excess(&reuse, site) < 1ull << 60);
		spill_benefit_add_chunk_use(&reuse, site, 7, one, other);
		assert_true(spill_benefit_chunk_excess(&reuse, site, 7) < 1ull << 60);
		assert_in_range(reuse.sites[site].resident_ns, 1, 3600000 * MS);
		assert_true(reuse.sites[site].in_place_ns <= 3600000 * MS);
	}
	/* Large ones are as exact. */
	uint16_t large = new_site();
	measured(large, 1024 * GIB, 3000000 * MS, 50);
	measured(large, 512 * GIB, 1500000 * MS, 50);
	near(spill_benefit_excess(&reuse, large), 3000000 * MS >> 20);
	assert_int_equal(reuse.sites[large].in_place.odd, 0);
	assert_int_equal(reuse.sites[large].in_place.measured, 100);
}
