/* Sets, host functions and words: the checks at submission, and the work. */
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "core_internal.h"

/* -- host functions ---------------------------------------------------------------------------- */

struct host_call {
	void (*function)(void *);
	void *data;
};

static void host_call(void *data)
{
	const struct host_call *call = data;

	guard_off();
	call->function(call->data);
}

enum sim_status sim_host_function(struct sim_stream *stream, void (*function)(void *), void *data)
{
	struct host_call *call = malloc(sizeof(*call));

	if (!call)
		return SIM_NO_HOST_MEMORY;
	*call = (struct host_call){function, data};
	return stream_submit(stream, SIM_NODE_HOST, host_call, call, false, false);
}

/* -- sets -------------------------------------------------------------------------------------- */

struct set {
	char *to;
	uint64_t pitch, width, rows;
	uint32_t value;
	unsigned element;
	struct sim_box_node about;
};

const struct sim_box_node *set_about(const void *data)
{
	return &((const struct set *)data)->about;
}

static void set_row(void *to, uint32_t value, unsigned element, uint64_t width)
{
	pages_ready(to, width * element, true);
	if (element == 1) {
		memset(to, (int)(value & 0xff), width);
	} else if (element == 2) {
		for (uint64_t i = 0; i < width; i++)
			((uint16_t *)to)[i] = (uint16_t)value;
	} else {
		for (uint64_t i = 0; i < width; i++)
			((uint32_t *)to)[i] = value;
	}
}

static void set_now(void *data)
{
	const struct set *set = data;

	time_use(set->about.to.address, set->width * set->element * set->rows, 1, guard_device());
	for (uint64_t row = 0; row < set->rows; row++)
		set_row(set->to + row * set->pitch, set->value, set->element, set->width);
}

enum sim_status sim_set(struct sim_stream *stream, uint64_t to, uint64_t pitch, uint32_t value,
                        unsigned element, uint64_t width, uint64_t rows, bool wait)
{
	struct side side;

	if (!sim_stream_alive(stream))
		return SIM_BAD_CONTEXT;
	if (!width || !rows)
		return SIM_OK;
	if (to % element || (rows > 1 && (pitch < width * element || pitch % element)))
		return SIM_INVALID;
	if (rows == 1)
		pitch = width * element;
	enum sim_status status = side_of(to, pitch * (rows - 1) + width * element, stream, &side);
	if (!status && side.what == SIDE_PAGEABLE)
		status = SIM_INVALID;
	if (status)
		return status;
	struct set *set = malloc(sizeof(*set));
	if (!set)
		return SIM_NO_HOST_MEMORY;
	*set = (struct set){side.at, pitch, width, rows, value, element, {.to = {to, pitch, 0}}};
	set->about.width = width;
	set->about.rows = rows;
	set->about.slices = 1;
	set->about.value = value;
	set->about.element = element;
	return stream_submit(stream, SIM_NODE_SET, set_now, set, wait && side.what == SIDE_PINNED, false);
}

/* -- words ------------------------------------------------------------------------------------- */

struct words {
	size_t count;
	struct sim_word word[]; /* addresses as this process reaches them */
};

static bool condition_met(const struct sim_word *word)
{
	uint64_t now = word->wide ? __atomic_load_n((uint64_t *)word->address, __ATOMIC_ACQUIRE)
	                          : __atomic_load_n((uint32_t *)word->address, __ATOMIC_ACQUIRE);
	uint64_t value = word->wide ? word->value : (uint32_t)word->value;

	switch (word->condition) {
	case SIM_AT_LEAST: /* also across the wrap-around of numbers */
		return word->wide ? (int64_t)(now - value) >= 0 : (int32_t)(uint32_t)(now - value) >= 0;
	case SIM_EQUAL:
		return now == value;
	case SIM_AND:
		return now & value;
	case SIM_NOR:
		return word->wide ? ~(now | value) : (uint32_t) ~(now | value);
	}
	return true;
}

static void words_now(void *data)
{
	struct words *words = data;

	for (size_t i = 0; i < words->count; i++) {
		const struct sim_word *word = &words->word[i];

		if (!word->wait && word->wide)
			__atomic_store_n((uint64_t *)word->address, word->value, __ATOMIC_RELEASE);
		else if (!word->wait)
			__atomic_store_n((uint32_t *)word->address, (uint32_t)word->value, __ATOMIC_RELEASE);
		while (word->wait && !condition_met(word))
			sched_yield();
	}
}

static bool is_managed(uint64_t address)
{
	struct sim_pointer about;

	return sim_pointer(address, &about) && about.kind == SIM_MANAGED;
}

enum sim_status sim_words(struct sim_stream *stream, const struct sim_word *words, size_t count)
{
	enum sim_status status = sim_stream_alive(stream) ? SIM_OK : SIM_BAD_CONTEXT;
	struct words *all = status ? NULL : malloc(sizeof(*all) + count * sizeof(*words));

	if (!all)
		return status ? status : SIM_NO_HOST_MEMORY;
	all->count = count;
	for (size_t i = 0; i < count && !status; i++) {
		const unsigned bytes = words[i].wide ? 8 : 4;
		struct side side;

		status =
		    words[i].address % bytes ? SIM_INVALID : side_of(words[i].address, bytes, stream, &side);
		if (!status && (side.what == SIDE_PAGEABLE || is_managed(words[i].address)))
			status = SIM_INVALID;
		if (!status) {
			all->word[i] = words[i];
			all->word[i].address = (uint64_t)side.at;
		}
	}
	if (status) {
		free(all);
		return status;
	}
	return stream_submit(stream, SIM_NODE_WORDS, words_now, all, false, false);
}
