/* The environment that scripts/sim sets: read once, and every mistake in it is fatal at once, because a test
 * that runs on another simulator than it asked for proves nothing. */
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

#define RULES 64
#define NAMES 256

struct rule {
	char function[80];
	unsigned long from;
	bool on;
	int code; /* -1: the function's own */
	atomic_ulong calls;
};

static struct sim_config config;
static struct rule rules[RULES];
static unsigned rule_count;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static _Noreturn void wrong(const char *variable, const char *value, const char *want)
{
	fprintf(stderr, "sim: %s=%s: want %s\n", variable, value, want);
	exit(2);
}

/* Not strtod: the program's locale may want a comma. Units of a thousandth are fine enough. */
static uint64_t size_of(const char *variable, uint64_t otherwise)
{
	static const struct {
		const char *suffix;
		unsigned shift;
	} units[] = {{"", 0}, {"B", 0}, {"KiB", 10}, {"MiB", 20}, {"GiB", 30}, {"TiB", 40}};
	const char *text = getenv(variable);
	uint64_t whole = 0, thousandths = 0, digit = 100;

	if (!text || !*text)
		return otherwise;
	const char *at = text;
	while (*at >= '0' && *at <= '9' && whole < (uint64_t)1 << 50)
		whole = whole * 10 + (uint64_t)(*at++ - '0');
	if (at > text && *at == '.')
		for (at++; *at >= '0' && *at <= '9'; digit /= 10)
			thousandths += digit * (uint64_t)(*at++ - '0');
	for (size_t i = 0; at > text && i < sizeof(units) / sizeof(*units); i++)
		if (!strcmp(at, units[i].suffix) && whole < (uint64_t)1 << (60 - units[i].shift))
			return (whole << units[i].shift) + (thousandths << units[i].shift) / 1000;
	wrong(variable, text, "a size such as 8GiB");
}

static void caps_of(const char *text)
{
	static const struct {
		const char *word;
		bool *flag;
		bool value;
	} words[] = {
	    {"novmm", &config.vmm, false},
	    {"nohostvmm", &config.host_vmm, false},
	    {"nomanaged", &config.concurrent, false},
	    {"noconcurrent", &config.concurrent, false},
	    {"nounified", &config.managed, false},
	    {"integrated", &config.integrated, true},
	    {"xnack", &config.xnack, true},
	};
	char copy[512];

	if (!text)
		return;
	snprintf(copy, sizeof(copy), "%s", text);
	char *place = NULL;
	for (char *word = strtok_r(copy, ", ", &place); word; word = strtok_r(NULL, ", ", &place)) {
		size_t i = 0;

		while (i < sizeof(words) / sizeof(*words) && strcmp(word, words[i].word))
			i++;
		if (i == sizeof(words) / sizeof(*words))
			wrong("SPILL_SIM_CAPS", text,
			      "some of novmm nohostvmm nomanaged nounified integrated xnack");
		*words[i].flag = words[i].value;
	}
}

static bool rule_of(const char *text, struct rule *rule)
{
	const char *colon = strchr(text, ':');
	char *end;

	if (!colon || colon == text || (size_t)(colon - text) >= sizeof(rule->function))
		return false;
	memcpy(rule->function, text, (size_t)(colon - text));
	rule->from = strtoul(colon + 1, &end, 10);
	rule->code = -1;
	if (end == colon + 1 || rule->from == 0)
		return false;
	if (*end == '+') {
		rule->on = true;
		end++;
	}
	if (*end == ':') {
		char *start = end + 1;

		rule->code = (int)strtol(start, &end, 10);
		if (end == start)
			return false;
	}
	return !*end;
}

static void rules_of(const char *text)
{
	char copy[4096];

	if (!text)
		return;
	snprintf(copy, sizeof(copy), "%s", text);
	char *place = NULL;
	for (char *one = strtok_r(copy, ", ", &place); one; one = strtok_r(NULL, ", ", &place))
		if (rule_count == RULES || !rule_of(one, &rules[rule_count++]))
			wrong("SPILL_SIM_FAIL", text, "FUNCTION:N[+][:CODE], separated by commas");
}

static void load(void)
{
	const char *devices = getenv("SPILL_SIM_DEVICES"), *verbose = getenv("SPILL_SIM_VERBOSE");

	config = (struct sim_config){
	    .vmm = true, .host_vmm = true, .managed = true, .concurrent = true, .devices = 1};
	config.vram = size_of("SPILL_SIM_VRAM", (uint64_t)8 << 30) / SIM_GRANULE * SIM_GRANULE;
	config.context_bytes = size_of("SPILL_SIM_CONTEXT", 0);
	if (devices && *devices) {
		char *end;

		config.devices = (int)strtol(devices, &end, 10);
		if (*end || config.devices < 0 || config.devices > SIM_DEVICES)
			wrong("SPILL_SIM_DEVICES", devices, "a number from 0 to 16");
	}
	config.verbose = verbose && *verbose && strcmp(verbose, "0");
	caps_of(getenv("SPILL_SIM_CAPS"));
	rules_of(getenv("SPILL_SIM_FAIL"));
}

const struct sim_config *sim_config(void)
{
	pthread_once(&once, load);
	return &config;
}

bool sim_fault(const char *symbol, const char *base, int *code)
{
	bool fail = false;

	sim_config();
	for (unsigned i = 0; i < rule_count; i++) {
		struct rule *rule = &rules[i];

		if (strcmp(rule->function, symbol) && (!base || strcmp(rule->function, base)))
			continue;
		unsigned long call = atomic_fetch_add(&rule->calls, 1) + 1;
		if (!fail && (call == rule->from || (rule->on && call > rule->from))) {
			*code = rule->code;
			fail = true;
		}
	}
	return fail;
}

void sim_missing(const char *symbol)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static const char *said[NAMES];

	pthread_mutex_lock(&lock);
	unsigned i = 0;
	while (i < NAMES && said[i] && strcmp(said[i], symbol))
		i++;
	bool say = i < NAMES && !said[i];
	if (say)
		said[i] = symbol;
	pthread_mutex_unlock(&lock);
	if (say)
		fprintf(stderr, "sim: %s is not implemented\n", symbol);
}

void sim_say(const char *format, ...)
{
	if (!sim_config()->verbose)
		return;
	char line[512];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(line, sizeof(line), format, arguments);
	va_end(arguments);
	fprintf(stderr, "sim: %s\n", line);
}
