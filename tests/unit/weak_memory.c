#include "weak_memory.h"

#include <assert.h>
#include <string.h>

#define MOST_OPERATIONS 16
#define MOST_LOCATIONS 8
#define NOBODY 2

/* A read-modify-write is two operations: LDAXR and STLXR, with nothing of others between. */
enum kind { LOAD, STORE, LOAD_FOR_STORE, STORE_IF_ALONE, BARRIER_OF_ALL, COMPILER_FENCE, NOTHING };

struct operation {
	enum kind kind;
	unsigned location;
	uint64_t value; /* of a store */
	enum weak_change change;
	memory_order order;
};

struct program {
	struct operation operations[MOST_OPERATIONS];
	unsigned count;
};

static struct {
	const volatile void *locations[MOST_LOCATIONS];
	uint64_t initial[MOST_LOCATIONS];
	unsigned location_count;
	struct program programs[2], whole[2];
	unsigned recording; /* a thread, or NOBODY */
	const uint64_t *replayed;
} model = {.recording = NOBODY};

/* A point of an execution. */
struct state {
	uint64_t memory[MOST_LOCATIONS];
	uint64_t loads[2][MOST_OPERATIONS]; /* by operation */
	uint32_t done[2];                   /* a bit for each operation */
	unsigned owner[MOST_LOCATIONS];     /* of the read-modify-write that is half done, or NOBODY */
};

/* -- recording --------------------------------------------------------------------------------- */

void weak_reset(void)
{
	memset(&model, 0, sizeof(model));
	model.recording = NOBODY;
}

void weak_watch(const volatile void *at, size_t size)
{
	assert(model.location_count < MOST_LOCATIONS);
	memcpy(&model.initial[model.location_count], (const void *)at, size);
	model.locations[model.location_count++] = at;
}

static bool find_location(const volatile void *at, unsigned *location)
{
	for (*location = 0; *location < model.location_count; ++*location)
		if (model.locations[*location] == at)
			return true;
	return false;
}

void weak_start_with(const volatile void *at, uint64_t value)
{
	unsigned location;
	if (find_location(at, &location))
		model.initial[location] = value;
}

void weak_record(unsigned thread)
{
	model.recording = thread;
}

void weak_stop(void)
{
	model.recording = NOBODY;
	model.replayed = NULL;
}

void weak_replay(const uint64_t *loads)
{
	model.replayed = loads;
}

static void record(enum kind kind, const volatile void *at, uint64_t value, memory_order order)
{
	struct operation operation = {.kind = kind, .value = value, .order = order};
	if (model.recording == NOBODY || (at && !find_location(at, &operation.location)))
		return;
	struct program *program = &model.programs[model.recording];
	assert(program->count < MOST_OPERATIONS);
	program->operations[program->count++] = operation;
	model.whole[model.recording] = *program;
}

static uint64_t read_now(const volatile void *at, size_t size)
{
	uint64_t value = 0;
	memcpy(&value, (const void *)at, size);
	return value;
}

static void write_now(volatile void *at, size_t size, uint64_t value)
{
	memcpy((void *)at, &value, size);
}

uint64_t weak_load(const volatile void *at, size_t size, memory_order order)
{
	unsigned location;
	if (model.replayed && find_location(at, &location))
		return *model.replayed++;
	record(LOAD, at, 0, order);
	return read_now(at, size);
}

void weak_store(volatile void *at, size_t size, uint64_t value, memory_order order)
{
	if (model.replayed)
		return;
	record(STORE, at, value, order);
	write_now(at, size, value);
}

static uint64_t changed(uint64_t old, enum weak_change change, uint64_t value)
{
	switch (change) {
	case WEAK_OR:
		return old | value;
	case WEAK_AND:
		return old & value;
	case WEAK_ADD:
		return old + value;
	case WEAK_SET:
		break;
	}
	return value;
}

static void record_pair(const volatile void *at, enum weak_change change, uint64_t value, memory_order order)
{
	unsigned location;
	if (model.recording == NOBODY || !find_location(at, &location))
		return;
	record(LOAD_FOR_STORE, at, 0, order);
	record(STORE_IF_ALONE, at, value, order);
	struct program *program = &model.programs[model.recording];
	program->operations[program->count - 1].change = change;
	model.whole[model.recording] = *program;
}

uint64_t weak_modify(volatile void *at, size_t size, enum weak_change change, uint64_t value,
                     memory_order order)
{
	uint64_t old = read_now(at, size);
	record_pair(at, change, value, order);
	write_now(at, size, changed(old, change, value));
	return old;
}

bool weak_exchange_if(volatile void *at, size_t size, void *expected, uint64_t value, memory_order order)
{
	uint64_t old = read_now(at, size);
	if (memcmp(&old, expected, size) != 0) {
		record(LOAD, at, 0, order);
		memcpy(expected, &old, size);
		return false;
	}
	record_pair(at, WEAK_SET, value, order);
	write_now(at, size, value);
	return true;
}

void weak_barrier_of_all(void)
{
	record(BARRIER_OF_ALL, NULL, 0, memory_order_seq_cst);
}

void weak_compiler_fence(void)
{
	record(COMPILER_FENCE, NULL, 0, memory_order_seq_cst);
}

/* -- weakening --------------------------------------------------------------------------------- */

unsigned weak_operations(void)
{
	return model.programs[0].count + model.programs[1].count;
}

bool weak_weaken(unsigned operation)
{
	unsigned first = model.programs[0].count;
	struct operation *weakened = operation < first ? &model.programs[0].operations[operation]
	                                               : &model.programs[1].operations[operation - first];
	if (weakened->order == memory_order_relaxed)
		return false;
	weakened->order = memory_order_relaxed;
	if (weakened->kind == BARRIER_OF_ALL || weakened->kind == COMPILER_FENCE)
		weakened->kind = NOTHING;
	return true;
}

void weak_restore(void)
{
	memcpy(model.programs, model.whole, sizeof(model.programs));
}

/* -- the rules --------------------------------------------------------------------------------- */

static bool is_load(const struct operation *operation)
{
	return operation->kind == LOAD || operation->kind == LOAD_FOR_STORE;
}

static bool is_store(const struct operation *operation)
{
	return operation->kind == STORE || operation->kind == STORE_IF_ALONE;
}

static bool acquires(const struct operation *operation)
{
	return is_load(operation) && operation->order != memory_order_relaxed;
}

static bool releases(const struct operation *operation)
{
	return is_store(operation) && operation->order != memory_order_relaxed;
}

/* Must the first one be done before the second one, which is later in the program? */
static bool is_ordered(const struct operation *first, const struct operation *second)
{
	if (first->kind == BARRIER_OF_ALL || second->kind == BARRIER_OF_ALL || acquires(first) ||
	    releases(second))
		return true;
	if (releases(first) && acquires(second) && second->order == memory_order_seq_cst)
		return true;
	if (first->kind == LOAD_FOR_STORE && second->kind == STORE_IF_ALONE && second == first + 1)
		return true;
	/* Of one location, only a load may come before a store: it gets the value of that store. */
	return (is_load(first) || is_store(first)) && (is_load(second) || is_store(second)) &&
	       first->location == second->location && !(is_store(first) && is_load(second));
}

static bool may_execute(const struct state *state, unsigned thread, unsigned index)
{
	const struct program *program = &model.programs[thread];
	if (state->done[thread] >> index & 1)
		return false;
	for (unsigned before = 0; before < index; before++)
		if (!(state->done[thread] >> before & 1) &&
		    is_ordered(&program->operations[before], &program->operations[index]))
			return false;
	return true;
}

/* The thread's own store before the load that memory does not have yet, or NULL. */
static const struct operation *pending_store(const struct state *state, unsigned thread, unsigned index)
{
	const struct program *program = &model.programs[thread];
	for (unsigned before = index; before-- > 0;)
		if (is_store(&program->operations[before]) &&
		    program->operations[before].location == program->operations[index].location)
			return state->done[thread] >> before & 1 ? NULL : &program->operations[before];
	return NULL;
}

/*
 * Has the thread done all of its operations up to some point, and none after it? Between fences the
 * compiler may have put them in another order.
 */
static bool is_at_a_point(const struct program *program, uint32_t done)
{
	for (unsigned fence = 0; fence < program->count; fence++) {
		uint32_t before = (1u << fence) - 1;
		if (program->operations[fence].kind == COMPILER_FENCE && (done & before) != before &&
		    done >> fence)
			return false;
	}
	return true;
}

/* False: it cannot be executed now, or this execution is like another one. */
static bool execute(struct state *state, unsigned thread, unsigned index)
{
	const struct operation *operation = &model.programs[thread].operations[index];
	uint64_t *memory = &state->memory[operation->location], *got = &state->loads[thread][index];
	unsigned *owner = &state->owner[operation->location];
	const struct operation *own = is_load(operation) ? pending_store(state, thread, index) : NULL;
	switch (operation->kind) {
	case LOAD:
		if (own && own->kind == STORE_IF_ALONE)
			return false;
		*got = own ? own->value : *memory;
		break;
	case LOAD_FOR_STORE:
		if (*owner != NOBODY || (own && own->kind == STORE_IF_ALONE))
			return false;
		*got = own ? own->value : *memory;
		*owner = thread;
		break;
	case STORE:
		if (*owner == !thread)
			return false; /* the other one would begin again */
		*memory = operation->value;
		break;
	case STORE_IF_ALONE:
		*memory = changed(*memory, operation->change, operation->value);
		*owner = NOBODY;
		break;
	case BARRIER_OF_ALL:
		if (!is_at_a_point(&model.programs[!thread], state->done[!thread]))
			return false;
		break;
	case COMPILER_FENCE:
	case NOTHING:
		break;
	}
	state->done[thread] |= 1u << index;
	return true;
}

/* -- all executions ---------------------------------------------------------------------------- */

static bool is_bad_execution(const struct state *state,
                             bool (*is_bad)(const struct weak_execution *execution))
{
	uint64_t loads[2][MOST_OPERATIONS];
	for (unsigned thread = 0; thread < 2; thread++) {
		unsigned count = 0;
		for (unsigned i = 0; i < model.programs[thread].count; i++)
			if (is_load(&model.programs[thread].operations[i]))
				loads[thread][count++] = state->loads[thread][i];
	}
	return is_bad(&(struct weak_execution){{loads[0], loads[1]}});
}

/* The states from which everything was tried. If it is full, some are tried again. */
#define SEEN (1u << 16)
static struct state seen[SEEN];
static bool is_taken[SEEN];

static bool is_seen(const struct state *state)
{
	const unsigned char *bytes = (const unsigned char *)state;
	uint64_t hash = 14695981039346656037ull;
	for (size_t i = 0; i < sizeof(*state); i++)
		hash = (hash ^ bytes[i]) * 1099511628211ull;
	for (unsigned probe = 0; probe < 16; probe++) {
		unsigned slot = (unsigned)(hash + probe) % SEEN;
		if (is_taken[slot] && memcmp(&seen[slot], state, sizeof(*state)) == 0)
			return true;
		if (is_taken[slot])
			continue;
		is_taken[slot] = true;
		seen[slot] = *state;
		return false;
	}
	return false;
}

static bool try_all(const struct state *state, bool (*is_bad)(const struct weak_execution *execution))
{
	bool ended = true;
	if (is_seen(state))
		return false;
	for (unsigned thread = 0; thread < 2; thread++) {
		for (unsigned index = 0; index < model.programs[thread].count; index++) {
			struct state next = *state;
			ended = ended && state->done[thread] >> index & 1;
			if (may_execute(state, thread, index) && execute(&next, thread, index) &&
			    try_all(&next, is_bad))
				return true;
		}
	}
	return ended && is_bad_execution(state, is_bad);
}

bool weak_allows(bool (*is_bad)(const struct weak_execution *execution))
{
	struct state start;
	memset(&start, 0, sizeof(start)); /* states are compared by bytes */
	memset(is_taken, 0, sizeof(is_taken));
	memcpy(start.memory, model.initial, sizeof(start.memory));
	for (unsigned i = 0; i < MOST_LOCATIONS; i++)
		start.owner[i] = NOBODY;
	return try_all(&start, is_bad);
}
