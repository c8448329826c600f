/*
 * usage: property [--seed S] [--cases N]   cases 0 to N - 1 of the seed
 *        property [--seed S] --case N      one of them
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "property.h"

static struct property_case this;

static void run_spilling(void)
{
	struct model model;

	case_mode(&this, SPILL_MODE_SPILL);
	model_begin(&model, &this, false);
	for (; this.at < EVENTS; this.at++) {
		model_event(&model, &this.events[this.at]);
		model_sums(&model);
	}
}

/* The same events with mode = observe and without libspill: the same results, and the same memory held. */
static void run_observing(void)
{
	struct model model, plain;

	case_mode(&this, SPILL_MODE_OBSERVE);
	model_begin(&model, &this, false);
	model_begin(&plain, &this, true);
	for (; this.at < EVENTS; this.at++) {
		bool served = model_event(&model, &this.events[this.at]);

		must(&this, served == model_event(&plain, &this.events[this.at]),
		     "observing changes a result");
		must(&this,
		     !memcmp(model.device_held, plain.device_held, sizeof(plain.device_held)) &&
		         !model.host_held,
		     "observing changes what is held");
	}
}

static void run(uint64_t seed, uint64_t number)
{
	case_make(&this, seed, number);
	run_spilling();
	run_observing();
}

/* Many cases meet everything; else the generator is broken, and much of the above says nothing. */
static int judge(uint64_t cases)
{
	static const char *const names[SEEN] = {"served by the driver",
	                                        "placed by rule",
	                                        "place failed",
	                                        "trimmed",
	                                        "demoted",
	                                        "split",
	                                        "managed",
	                                        "host",
	                                        "above a cap",
	                                        "full",
	                                        "refused by rule",
	                                        "over",
	                                        "surfaced",
	                                        "repeats",
	                                        "in a capture",
	                                        "under a rule",
	                                        "out of memory"};
	int missing = 0;

	for (unsigned i = 0; i < SEEN; i++) {
		printf("%s%s %llu", i ? ", " : "", names[i], (unsigned long long)model_seen[i]);
		missing += cases >= 1000 && model_seen[i] < cases / 100;
	}
	printf("\n");
	if (missing)
		fprintf(stderr, "property: %d of these are too rare to be tested\n", missing);
	return missing != 0;
}

int main(int count, char **arguments)
{
	uint64_t seed = 1, cases = 20000;

	for (int i = 1; i + 1 < count; i += 2) {
		uint64_t value = strtoull(arguments[i + 1], NULL, 10);

		if (strcmp(arguments[i], "--seed") == 0)
			seed = value;
		else if (strcmp(arguments[i], "--cases") == 0)
			cases = value;
		else if (strcmp(arguments[i], "--case") == 0)
			return run(seed, value), 0;
		else
			return 2;
	}
	for (uint64_t number = 0; number < cases; number++)
		run(seed, number);
	printf("property: seed %llu, %llu cases hold: ", (unsigned long long)seed, (unsigned long long)cases);
	return judge(cases);
}
