/*
 * The environment variables that scripts/sim sets, read once. A mistake in one ends the process at
 * once: a test on another simulator than it asked for proves nothing.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core_internal.h"

#define RULES 64
#define NAMES 256

struct rule {
	char function[80];
	unsigned long from;
	bool on;
	int code; /* -1: the function's own error */
	atomic_ulong calls;
};

static struct sim_config config;
static struct rule rules[RULES];
static unsigned rule_count;
static int trace_file = -1;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static _Noreturn void refuse_value(const char *variable, const char *value, const char *want)
{
	fprintf(stderr, "sim: %s=%s: want %s\n", variable, value, want);
	exit(2);
}

/* Not strtod: the locale may use a decimal comma. Thousandths of a unit are precise enough. */
static uint64_t parse_size(const char *variable, const char *text)
{
	static const struct {
		const char *suffix;
		unsigned shift;
	} units[] = {{"", 0}, {"B", 0}, {"KiB", 10}, {"MiB", 20}, {"GiB", 30}, {"TiB", 40}};
	uint64_t whole = 0, thousandths = 0, digit = 100;
	const char *at = text;

	while (*at >= '0' && *at <= '9' && whole < (uint64_t)1 << 50)
		whole = whole * 10 + (uint64_t)(*at++ - '0');
	if (at > text && *at == '.')
		for (at++; *at >= '0' && *at <= '9'; digit /= 10)
			thousandths += digit * (uint64_t)(*at++ - '0');
	for (size_t i = 0; at > text && i < sizeof(units) / sizeof(*units); i++)
		if (!strcmp(at, units[i].suffix) && whole < (uint64_t)1 << (60 - units[i].shift))
			return (whole << units[i].shift) + (thousandths << units[i].shift) / 1000;
	refuse_value(variable, text, "a size such as 8GiB");
}

static uint64_t size_of(const char *variable, uint64_t otherwise)
{
	const char *text = getenv(variable);

	return text && *text ? parse_size(variable, text) : otherwise;
}

/* One size, or one per device, separated by commas. The last size is for all that follow. */
static void vram_of(const char *text)
{
	char copy[512];
	uint64_t bytes = (uint64_t)8 << 30;

	snprintf(copy, sizeof(copy), "%s", text ? text : "");
	char *place = NULL, *word = strtok_r(copy, ", ", &place);
	for (int i = 0; i < SIM_DEVICES; i++, word = word ? strtok_r(NULL, ", ", &place) : NULL) {
		if (word)
			bytes = parse_size("SPILL_SIM_VRAM", word);
		config.vram[i] = bytes / SIM_GRANULE * SIM_GRANULE;
	}
}

static unsigned number_of(const char *variable, unsigned most, unsigned otherwise)
{
	const char *text = getenv(variable);
	char want[32], *end;

	if (!text || !*text)
		return otherwise;
	unsigned long number = strtoul(text, &end, 10);
	snprintf(want, sizeof(want), "a number from 0 to %u", most);
	if (*end || *text < '0' || *text > '9' || number > most)
		refuse_value(variable, text, want);
	return (unsigned)number;
}

/* Sizes by word, such as `module:2MiB,stream:1MiB`. A word that is not listed keeps its size. */
static void sizes_of(const char *variable, const char *const *words, size_t count, const char *want,
                     uint64_t *sizes)
{
	const char *text = getenv(variable);
	char copy[512];

	snprintf(copy, sizeof(copy), "%s", text ? text : "");
	char *place = NULL;
	for (char *word = strtok_r(copy, ", ", &place); word; word = strtok_r(NULL, ", ", &place)) {
		char *colon = strchr(word, ':');
		size_t i = 0;

		if (colon)
			*colon = 0;
		while (i < count && strcmp(word, words[i]))
			i++;
		if (!colon || i == count)
			refuse_value(variable, text, want);
		sizes[i] = parse_size(variable, colon + 1);
	}
}

static void room_of(void)
{
	static const char *const words[] = {
	    [SIM_ROOM_MODULE] = "module", [SIM_ROOM_FUNCTION] = "function", [SIM_ROOM_STREAM] = "stream",
	    [SIM_ROOM_EVENT] = "event",   [SIM_ROOM_EXEC] = "exec",         [SIM_ROOM_THREADS] = "threads"};
	const size_t count = sizeof(words) / sizeof(*words);

	_Static_assert(sizeof(words) / sizeof(*words) == sizeof(config.room) / sizeof(*config.room),
	               "all of them");
	sizes_of("SPILL_SIM_ROOM", words, count,
	         "some of module function stream event exec threads, each with :SIZE", config.room);
}

static void time_of(void)
{
	static const char *const words[] = {"device", "link", "launch"};
	uint64_t sizes[] = {0, 0, 0};

	sizes_of("SPILL_SIM_TIME", words, sizeof(words) / sizeof(*words),
	         "some of device:SIZE link:SIZE (bytes a second) launch:MICROSECONDS", sizes);
	config.time_device = sizes[0];
	config.time_link = sizes[1];
	config.time_launch = sizes[2];
}

/*
 * Numbers only. From the first invalid number on, no further device is visible (CUDA Programming
 * Guide, "CUDA Environment Variables"). HIP reads the variable as well.
 */
static void visible_of(const char *text)
{
	char *end;

	config.devices = text ? 0 : config.installed;
	for (int i = 0; i < SIM_DEVICES; i++)
		config.which[i] = i;
	while (text && *text >= '0' && *text <= '9' && config.devices < config.installed) {
		unsigned long number = strtoul(text, &end, 10);

		if (number >= (unsigned long)config.installed || (*end && *end != ','))
			return;
		config.which[config.devices++] = (int)number;
		text = *end ? end + 1 : end;
	}
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
	    {"coherent", &config.coherent, true},
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
			refuse_value("SPILL_SIM_CAPS", text,
			             "some of novmm nohostvmm nomanaged nounified integrated coherent xnack");
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
			refuse_value("SPILL_SIM_FAIL", text, "FUNCTION:N[+][:CODE], separated by commas");
}

static void load_config(void)
{
	const char *verbose = getenv("SPILL_SIM_VERBOSE");

	config = (struct sim_config){.vmm = true, .host_vmm = true, .managed = true, .concurrent = true};
	vram_of(getenv("SPILL_SIM_VRAM"));
	config.addresses = size_of("SPILL_SIM_ADDRESSES", 0) / SIM_GRANULE * SIM_GRANULE;
	config.context_bytes = size_of("SPILL_SIM_CONTEXT", 0);
	config.installed = (int)number_of("SPILL_SIM_DEVICES", SIM_DEVICES, 1);
	visible_of(getenv("CUDA_VISIBLE_DEVICES"));
	config.reserved = size_of("SPILL_SIM_RESERVED", 0);
	config.held = size_of("SPILL_SIM_HELD", 0);
	config.reclaimable = size_of("SPILL_SIM_RECLAIMABLE", 0);
	config.queue = number_of("SPILL_SIM_QUEUE", 1 << 20, 1022);
	config.jitter = number_of("SPILL_SIM_JITTER", 1000000, 0);
	config.node = (int)number_of("SPILL_SIM_NODE", 1023, 0);
	room_of();
	time_of();
	config.verbose = verbose && *verbose && strcmp(verbose, "0");
	caps_of(getenv("SPILL_SIM_CAPS"));
	rules_of(getenv("SPILL_SIM_FAIL"));
	const char *calls = getenv("SPILL_SIM_TRACE");
	if (calls && (trace_file = open(calls, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600)) < 0)
		refuse_value("SPILL_SIM_TRACE", calls, "a file that can be written");
}

const struct sim_config *sim_config(void)
{
	pthread_once(&once, load_config);
	return &config;
}

/* SPILL_SIM_TRACE: a line with its name for each call. */
static void trace_call(const char *symbol)
{
	char line[128];

	if (trace_file < 0)
		return;
	int length = snprintf(line, sizeof(line), "%s\n", symbol);
	if (write(trace_file, line, (size_t)length) != length)
		refuse_value("SPILL_SIM_TRACE", symbol, "a file that can be written");
}

static __thread struct sim_entered entered;

struct sim_entered sim_entered(void)
{
	return entered;
}

bool sim_fault(const char *symbol, const char *base, const void *caller, int *code)
{
	bool fail = false;

	sim_config();
	entered = (struct sim_entered){symbol, caller};
	trace_call(symbol);
	if (sim_test_fault && sim_test_fault(symbol, caller, code))
		return true;
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
