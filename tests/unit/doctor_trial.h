/* What `spill doctor` says of a trial of the drivers, for tests of device.c and speed.c. */
#ifndef DOCTOR_TRIAL_H
#define DOCTOR_TRIAL_H

#include "backend_cuda.h"
#include "doctor_driver.h"
#include "doctor_found.h"

#define MIB ((uint64_t)1 << 20)
#define GIB ((uint64_t)1 << 30)
#define ALL (SPILL_CAN_MOVE | SPILL_CAN_SPLIT | SPILL_CAN_MANAGED | SPILL_CAN_HOST)

/* -- in place of doctor.c, driver.c, library.c, offload.c and host_speed.c ------------------------- */

static const char *const cuda_files[] = {"libcuda.so.1", "other", NULL}, *const hip_files[] = {
                                                                             "libamdhip64.so.7", NULL};
const struct driver_vendor driver_cuda = {.name = "NVIDIA", .files = cuda_files, .no_device = {100, 100}};
const struct driver_vendor driver_hip = {.name = "AMD", .files = hip_files, .no_device = {100, 101}};
struct doctor_needs doctor_needs;

static struct driver_facts cuda, hip;
static bool cuda_starts, hip_starts; /* else there was no process for the trial */
static unsigned tried;
static struct doctor_patient patient;
static struct doctor_devices together;
static unsigned models, speeds;
static struct host_speed host;
static const char *there[2];

const struct driver_facts *driver_try(const struct driver_vendor *vendor, unsigned timeout_ms, bool copying)
{
	tried++;
	assert_int_equal(timeout_ms, patient.timeout_ms);
	assert_int_equal(copying, !patient.quick);
	if (vendor == &driver_cuda)
		return cuda_starts ? &cuda : NULL;
	return hip_starts ? &hip : NULL;
}

void doctor_look_at_model(const struct doctor_patient *whose, const struct doctor_devices *devices)
{
	assert_ptr_equal(whose, &patient);
	together = *devices;
	models++;
}

struct host_speed host_speed(void)
{
	speeds++;
	return host;
}

bool doctor_is_there(const struct doctor_patient *whose, const char *path)
{
	return (there[0] && !strcmp(path, there[0])) || (there[1] && !strcmp(path, there[1]));
}

/* -- the frame ------------------------------------------------------------------------------------- */

/* Two drivers that are absent. */
static inline int nothing(void **state)
{
	cuda = hip = (struct driver_facts){.stage = DRIVER_ABSENT};
	cuda_starts = hip_starts = true;
	patient = (struct doctor_patient){.root = "/nonexistent", .timeout_ms = 7000, .quick = true};
	doctor_needs = (struct doctor_needs){.cuda = ""};
	together = (struct doctor_devices){.count = 0};
	host = (struct host_speed){.rate = 0};
	there[0] = there[1] = NULL;
	models = speeds = 0;
	return 0;
}

static inline void finds(const char *expected)
{
	find_nothing();
	tried = 0;
	doctor_look_at_devices(&patient);
	assert_int_equal(tried, 2);
	assert_string_equal(said, expected);
}

/* A trial that came to its end, on devices that can all. */
static inline struct driver_facts works(unsigned devices)
{
	struct driver_facts facts = {
	    .stage = DRIVER_DONE, .finished = true, .complete = true, .count = devices};

	for (unsigned i = 0; i < devices; i++)
		facts.devices[i] = (struct driver_device){.identity = {.name = "Card", .bytes = 8 * GIB},
		                                          .capabilities = ALL,
		                                          .free = (i + 1) * GIB,
		                                          .concurrent = true};
	return facts;
}

#define CARD(number, free) \
	"device: device " number ": Card, 8.00 GiB, " free \
	" free, discrete; concurrent managed access yes, " \
	"pageable access no; can move, split, managed, host\n"
#define CARD_0 CARD("0", "1.00 GiB")

#endif
