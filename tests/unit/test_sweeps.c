/*
 * The bytes that the order and the window move together. The programs sweep, train, change their
 * pattern, or have none. The figures are compared with the optimum, which knows the future, and
 * with least recently used on demand.
 */
#define SETUP begin
#include "unit.h"
#include "cache_sim.h"

static struct sim *sim;

static int begin(void **state)
{
	sim = sim_begin();
	return 0;
}

static void chunks(unsigned count, uint64_t mib)
{
	while (count--)
		sim_chunk(sim, (mib ? mib : 2 + sim_random(32) * 2) * SIM_MIB);
}

/* Ours is at most `percent` of `reference` for the uses [from, to), and `more` beyond that. */
static void at_most(const char *what, const uint64_t *reference, unsigned percent, uint64_t more,
                    unsigned from, unsigned to)
{
	uint64_t ours = sim_moved(sim->ours, from, to), theirs = sim_moved(reference, from, to);

	assert_true(theirs);
	print_message("%s: %u MiB brought, %u%% of %u\n", what, (unsigned)(ours / SIM_MIB),
	              (unsigned)(ours * 100 / theirs), (unsigned)(theirs / SIM_MIB));
	assert_true(ours <= theirs * percent / 100 + more);
}

#define STEPS 12

/*
 * Steps over so many chunks, forward; the memory for `percent` of them. From the third step on, but for the last. The optimum
 * leaves parts of chunks behind: with sizes that differ, one chunk a step is what it takes to have whole ones.
 */
static void sweep(unsigned count, uint64_t mib, unsigned percent)
{
	begin(NULL);
	chunks(count, mib);
	sim->capacity = sim_total(sim) * percent / 100;
	for (unsigned step = 0; step < STEPS; step++)
		for (unsigned i = 0; i < count; i++)
			sim_use(sim, i, (uint16_t)(i % 5));
	sim_run(sim);
	at_most("sweep", sim->optimum, 120, mib ? 0 : (STEPS - 3) * 64 * SIM_MIB, 2 * count,
	        (STEPS - 1) * count);
}

TEST(sweeps)
{
	static const unsigned percents[] = {97, 95, 90, 80, 67, 50, 33, 20};

	for (unsigned i = 0; i < sizeof(percents) / sizeof(percents[0]); i++) {
		sweep(100, 64, percents[i]);
		sweep(400, 0, percents[i]);
		sweep(40, 0, percents[i]);
		sweep(60, 2, percents[i]);
	}
}

#define LAYERS 24
enum { FORWARD = 1, WRITES, BACKWARD, GRADS, OPTIMISER };

/* A layer: 2 of weights, 3 of activations, 2 of gradients. */
struct layer {
	uint32_t weights[2], activations[3], grads[2];
};

static void training_step(const struct layer *layers)
{
	for (unsigned l = 0; l < LAYERS; l++)
		for (unsigned i = 0; i < 3; i++) {
			sim_use(sim, layers[l].weights[i % 2], FORWARD);
			sim_use(sim, layers[l].activations[i], WRITES);
		}
	for (unsigned l = LAYERS; l-- > 0;)
		for (unsigned i = 3; i-- > 0;) {
			sim_use(sim, layers[l].activations[i], BACKWARD);
			sim_use(sim, layers[l].weights[i % 2], BACKWARD);
			sim_use(sim, layers[l].grads[i % 2], GRADS);
		}
	for (unsigned l = 0; l < LAYERS; l++)
		for (unsigned i = 0; i < 2; i++) {
			sim_use(sim, layers[l].weights[i], OPTIMISER);
			sim_use(sim, layers[l].grads[i], OPTIMISER);
		}
}

static void train(uint64_t weight_mib, uint64_t activation_mib, unsigned percent)
{
	struct layer layers[LAYERS];

	begin(NULL);
	for (unsigned l = 0; l < LAYERS; l++)
		for (unsigned i = 0; i < 2; i++)
			layers[l].weights[i] = sim_chunk(sim, weight_mib * SIM_MIB);
	for (unsigned l = 0; l < LAYERS; l++)
		for (unsigned i = 0; i < 3; i++)
			layers[l].activations[i] = sim_chunk(sim, activation_mib * SIM_MIB);
	for (unsigned l = 0; l < LAYERS; l++)
		for (unsigned i = 0; i < 2; i++)
			layers[l].grads[i] = sim_chunk(sim, weight_mib * SIM_MIB);
	sim->capacity = sim_total(sim) * percent / 100;
	for (unsigned step = 0; step < 6; step++)
		training_step(layers);
	sim_run(sim);
	at_most("training", sim->optimum, 120, 0, sim->count / 3, sim->count / 6 * 5);
}

/* As PyTorch trains: all forward, all back, then the optimiser over weights and gradients. */
TEST(training)
{
	static const unsigned percents[] = {95, 85, 75, 65, 50, 35};

	for (unsigned i = 0; i < sizeof(percents) / sizeof(percents[0]); i++) {
		train(32, 64, percents[i]);
		train(20, 20, percents[i]);
		train(64, 22, percents[i]);
	}
}

/* Forward and back over the same chunks. */
TEST(there_and_back)
{
	chunks(100, 0);
	sim->capacity = sim_total(sim) * 2 / 3;
	for (unsigned step = 0; step < 6; step++) {
		for (unsigned i = 0; i < 100; i++)
			sim_use(sim, i, FORWARD);
		for (unsigned i = 100; i-- > 0;)
			sim_use(sim, i, BACKWARD);
	}
	sim_run(sim);
	at_most("there and back", sim->optimum, 120, 0, 400, 1000);
}

/* Nothing can be foreseen: then no more is moved than on demand, by age. */
TEST(random_uses)
{
	static const unsigned counts[] = {8, 16, 30, 64, 200};

	for (unsigned i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		begin(NULL);
		chunks(counts[i], 32);
		sim->capacity = sim_total(sim) * 2 / 3;
		for (unsigned use = 0; use < 8000; use++)
			sim_use(sim, sim_random(counts[i]), (uint16_t)sim_random(3));
		sim_run(sim);
		at_most("random", sim->lru, 105, 0, 0, sim->count);
	}
}

/* A sweep with random uses in between, one of eight. */
TEST(insertions)
{
	unsigned from = 0, to = 0;

	chunks(120, 32);
	sim->capacity = sim_total(sim) * 3 / 4;
	for (unsigned step = 0; step < 12; step++) {
		from = step == 2 ? sim->count : from;
		to = step == 11 ? sim->count : to;
		for (unsigned i = 0; i < 100; i++) {
			sim_use(sim, i, FORWARD);
			if (!sim_random(8))
				sim_use(sim, sim_random(120), WRITES);
		}
	}
	sim_run(sim);
	at_most("insertions", sim->optimum, 150, 0, from, to);
}

static void phase(const uint32_t *keys, unsigned count, unsigned steps, uint16_t site)
{
	while (steps--)
		for (unsigned i = 0; i < count; i++)
			sim_use(sim, keys[i], site);
}

/* The order is another one, of the same chunks: one step later it is known. */
TEST(phase_change)
{
	uint32_t keys[100];
	unsigned changed;

	chunks(100, 0);
	sim->capacity = sim_total(sim) * 3 / 4;
	for (unsigned i = 0; i < 100; i++)
		keys[i] = i;
	phase(keys, 100, 4, FORWARD);
	for (unsigned i = 100; i-- > 1;) {
		unsigned other = sim_random(i);
		uint32_t key = keys[i];

		keys[i] = keys[other];
		keys[other] = key;
	}
	changed = sim->count;
	phase(keys, 100, 5, FORWARD);
	sim_run(sim);
	at_most("phase change, new step", sim->lru, 120, 0, changed, changed + 100);
	at_most("phase change, afterwards", sim->optimum, 120, 0, changed + 100, changed + 400);
}

/*
 * And back to one that was known once. That pattern was about to end when it was last seen. So the
 * forecast is wrong for one step, though no worse than by age, and the next step pays for it.
 */
TEST(phase_returns)
{
	uint32_t first[60], second[60];
	unsigned changed;

	chunks(100, 32);
	sim->capacity = sim_total(sim) * 2 / 5;
	for (unsigned i = 0; i < 60; i++) {
		first[i] = i;
		second[i] = 99 - i;
	}
	phase(first, 60, 4, FORWARD);
	phase(second, 60, 4, FORWARD);
	changed = sim->count;
	phase(first, 60, 12, FORWARD);
	sim_run(sim);
	at_most("phase returns, two steps", sim->lru, 105, 0, changed, changed + 120);
	at_most("phase returns, afterwards", sim->optimum, 120, 0, changed + 120, changed + 660);
}

/*
 * Two models at once, of 60 and 47 uses a step, in random turns. The position of the other model
 * was never the same before. So one model is foreseen, and the other one is taken from its last
 * turn. The optimum knows the random turns.
 */
TEST(two_models)
{
	unsigned a = 0, b = 0;

	chunks(107, 32);
	sim->capacity = sim_total(sim) * 3 / 4;
	for (unsigned i = 0; i < 4000; i++) {
		if (sim_random(2))
			sim_use(sim, a++ % 60, FORWARD);
		else
			sim_use(sim, 60 + b++ % 47, BACKWARD);
	}
	sim_run(sim);
	at_most("two models", sim->optimum, 220, 0, 400, 3800);
	at_most("two models", sim->lru, 50, 0, 400, 3800);
}

/* Two models whose steps go together, with turns of a few uses that differ from step to step. */
TEST(two_models_in_step)
{
	chunks(120, 32);
	sim->capacity = sim_total(sim) * 3 / 4;
	for (unsigned step = 0; step < 100; step++) {
		unsigned a = 0, b = 0;

		while (a + b < 120) {
			if (b == 60 || (a < 60 && a <= b + 2 && (b > a + 2 || sim_random(2))))
				sim_use(sim, a++, FORWARD);
			else
				sim_use(sim, 60 + b++, BACKWARD);
		}
	}
	sim_run(sim);
	at_most("two models in step", sim->optimum, 130, 0, 240, 11880);
}
