/* Arrays: device memory with a shape, whose address the program does not see. */
#include <stdlib.h>

#include "core_internal.h"

#define ROW_ALIGNMENT 512

struct sim_array {
	struct object object;
	struct sim_array *next;
	struct sim_context *context;
	uint64_t address, pitch;
	_Alignas(16) char face[SIM_FACE];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct sim_array *arrays;

enum sim_status sim_array_create(struct sim_context *context, uint64_t row_bytes, uint64_t rows,
                                 struct sim_array **out)
{
	uint64_t pitch = round_up(row_bytes, ROW_ALIGNMENT), bytes, address;

	if (pitch < row_bytes || __builtin_mul_overflow(pitch, rows, &bytes))
		return SIM_NO_MEMORY;
	enum sim_status status = sim_alloc(context, SIM_DEVICE, bytes, &address);
	if (status)
		return status;
	struct sim_array *array = object_new(OBJECT_ARRAY, sizeof(*array));
	if (!array) {
		sim_free(address, 1u << SIM_DEVICE);
		return SIM_NO_HOST_MEMORY;
	}
	array->context = context;
	array->address = address;
	array->pitch = pitch;
	pthread_mutex_lock(&lock);
	array->next = arrays;
	arrays = array;
	pthread_mutex_unlock(&lock);
	*out = array;
	return SIM_OK;
}

bool sim_array_alive(const struct sim_array *array)
{
	return object_is(array, OBJECT_ARRAY);
}

/* Removes one array, or all of `context`, and ends the objects. False: none was found. */
static bool take_out(const struct sim_array *array, const struct sim_context *context)
{
	bool found = false;

	pthread_mutex_lock(&lock);
	for (struct sim_array **link = &arrays; *link;) {
		struct sim_array *one = *link;

		if (one == array || (!array && one->context == context)) {
			*link = one->next;
			object_delete(one);
			found = true;
		} else {
			link = &one->next;
		}
	}
	pthread_mutex_unlock(&lock);
	return found;
}

enum sim_status sim_array_destroy(struct sim_array *array)
{
	if (!sim_array_alive(array))
		return SIM_INVALID;
	uint64_t address = array->address;
	return take_out(array, NULL) ? sim_free(address, 1u << SIM_DEVICE) : SIM_INVALID;
}

void array_context_gone(struct sim_context *context)
{
	take_out(NULL, context);
}

void *sim_array_face(struct sim_array *array)
{
	return array->face;
}

uint64_t sim_array_address(const struct sim_array *array, uint64_t *pitch)
{
	*pitch = array->pitch;
	return array->address;
}
