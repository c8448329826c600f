/* spill doctor: judges drivers and devices, from the facts of doctor_driver.h. */
#include <string.h>

#include "backend_cuda.h"
#include "doctor.h"
#include "doctor_driver.h"
#include "program_file.h"
#include "small_file.h"
#include "put.h"
#include "text.h"

#define MOVES_FROM 12050 /* first version with cuCtxRecordEvent */

static const struct known_vendor {
	const struct driver_vendor *vendor;
	const char *need;     /* in doctor_needs */
	const char *nodes[2]; /* one exists if the machine or container has such a GPU; NULL: no second */
} vendors[] = {{&driver_cuda, doctor_needs.cuda, {PROGRAM_NODE_NVIDIA, "/dev/dxg"}}, /* of WSL 2 */
               {&driver_hip, doctor_needs.hip, {PROGRAM_NODE_AMD}}};

#define VENDORS (sizeof(vendors) / sizeof(vendors[0]))

static const char *stage_text(enum driver_stage stage)
{
	static const char *const texts[] = {
	    [DRIVER_ABSENT] = "beginning",
	    [DRIVER_LOADING] = "being loaded",
	    [DRIVER_STARTING] = "starting",
	    [DRIVER_ASKING] = "telling its devices",
	    [DRIVER_TOUCHING] = "making memory on a device",
	    [DRIVER_COPYING] = "copying to and from a device",
	    [DRIVER_DONE] = "ending",
	};

	return texts[stage];
}

/* A major version counts 1000 in CUDA and 10,000,000 in HIP. */
static void report_driver(const struct doctor_patient *patient, const struct driver_vendor *vendor,
                          const struct driver_facts *facts)
{
	bool cuda = vendor == &driver_cuda;
	int major = facts->version / (cuda ? 1000 : 10000000);
	int minor = facts->version % (cuda ? 1000 : 10000000) / (cuda ? 10 : 100000);
	char text[512] = "", path[4096];

	if (cuda &&
	    spill_small_file_path(patient->root, "/proc/driver/nvidia", "version", path, sizeof(path)))
		spill_small_file_read(path, text, sizeof(text));
	text[strcspn(text, "\n")] = '\0';
	doctor_find(DOCTOR_driver, "%s driver for %s %d.%d, %s%s%s", vendor->name, cuda ? "CUDA" : "HIP",
	            major, minor, facts->library, text[0] ? "; " : "", text);
	if (cuda && facts->version < MOVES_FROM)
		doctor_find(facts->version < SPILL_CUDA_SPLITS_FROM ? DOCTOR_driver_oldest
		                                                    : DOCTOR_driver_old,
		            "the driver is of CUDA %s", cli_driver_version("cuda", facts->version).text);
}

static const char *memory_text(const struct driver_device *device)
{
	return device->capabilities & SPILL_IS_INTEGRATED ? "integrated: its memory is the host's"
	       : device->capabilities & SPILL_IS_COHERENT
	           ? "coherent: it reads the host's memory over a cache-coherent link"
	           : "discrete";
}

static void judge_touch(unsigned which, enum driver_kind kind, const struct driver_touch *touch)
{
	static const char *const names[] = {
	    [TOUCH_CONTEXT] = "a context",
	    [TOUCH_DEVICE_CHUNK] = "a chunk on the device",
	    [TOUCH_HOST_CHUNK] = "a chunk on the host",
	    [TOUCH_MANAGED] = "managed memory",
	    [TOUCH_HOST] = "pinned host memory",
	};

	if (touch->tried && touch->error)
		doctor_find(touch->full ? DOCTOR_touch_full : DOCTOR_touch_fails, "device %u: %s: %s: %s",
		            which, names[kind], touch->call, touch->name);
}

/* The driver and a screen hold a little on most devices. */
static void judge_use(unsigned which, const struct driver_device *device)
{
	char names[DRIVER_USERS * (CLI_CARD_USER_TEXT + 2)], user[CLI_CARD_USER_TEXT];
	struct spill_text text = spill_text_begin(names, sizeof(names));

	if (device->held <= device->identity.bytes / 8)
		return;
	for (unsigned i = 0; i < device->users; i++)
		spill_text_format(&text, "%s%s", i ? ", " : ": ", cli_card_user_text(&device->user[i], user));
	doctor_find(DOCTOR_device_held, "device %u: others hold %s of %s%s", which,
	            spill_size(device->held).text, spill_size(device->identity.bytes).text, names);
}

static void judge_device(const struct driver_vendor *vendor, unsigned which,
                         const struct driver_device *device)
{
	bool cuda = vendor == &driver_cuda;

	doctor_find(DOCTOR_device,
	            "device %u: %s, %s, %s free, %s; concurrent managed access %s, pageable access %s; can "
	            "%s%s%s%s%s",
	            which, device->identity.name[0] ? device->identity.name : "without a name",
	            spill_size(device->identity.bytes).text, spill_size(device->free).text,
	            memory_text(device), device->concurrent ? "yes" : "no",
	            device->host_tables ? "by the host's page tables"
	            : device->pageable  ? "yes"
	                                : "no",
	            device->capabilities & SPILL_CAN_MOVE ? "move, " : "",
	            device->capabilities & SPILL_CAN_SPLIT ? "split, " : "",
	            device->capabilities & SPILL_CAN_MANAGED ? "managed, " : "",
	            device->capabilities & SPILL_CAN_HOST ? "host" : "no host memory",
	            device->move == SPILL_PROBE_WORKS && device->probed ? "; a chunk was moved there and back"
	                                                                : "");
	judge_use(which, device);
	if (device->capabilities & (SPILL_IS_INTEGRATED | SPILL_IS_COHERENT))
		doctor_find(DOCTOR_device_memory, "device %u is %s", which, memory_text(device));
	if (cuda && !(device->capabilities & SPILL_CAN_SPLIT))
		doctor_find(
		    DOCTOR_no_vmm, "device %u: virtual memory management on the %s is not offered", which,
		    device->vmm ? device->host_vmm ? "host is offered, but some function of it" : "host"
		                : "device");
	if (cuda && !(device->capabilities & SPILL_CAN_MANAGED))
		doctor_find(DOCTOR_no_managed, "device %u has no concurrent managed access", which);
	if (!cuda && !device->pageable && !(device->capabilities & SPILL_IS_INTEGRATED))
		doctor_find(DOCTOR_no_xnack, "device %u: XNACK is off, or the card has none", which);
	for (enum driver_kind kind = 0; kind < TOUCHES; kind++)
		judge_touch(which, kind, &device->touch[kind]);
	if (device->probed && device->move == SPILL_PROBE_LATER)
		doctor_find(DOCTOR_touch_full, "device %u: no memory for a trial move of a chunk", which);
	else if (device->probed && device->move == SPILL_PROBE_FAILS)
		doctor_find(DOCTOR_move_fails, "device %u: a trial move of a chunk did not work", which);
}

/* CUDA 13.0 is 13000. A driver serves all runtimes of its own major version (CUDA Compatibility). */
static void judge_runtime(const struct driver_facts *facts)
{
	unsigned driver = (unsigned)facts->version / 1000;

	if (driver && doctor_needs.runtime_major > driver)
		doctor_find(DOCTOR_runtime_newer, "%s, and the driver is of CUDA %s", doctor_needs.runtime,
		            cli_driver_version("cuda", facts->version).text);
}

static bool has_no_device(const struct driver_vendor *vendor, const struct driver_facts *facts)
{
	return facts->error ? facts->error == vendor->no_device[0] || facts->error == vendor->no_device[1]
	                    : !facts->count;
}

static void judge_driver(const struct doctor_patient *patient, const struct driver_vendor *vendor,
                         const struct driver_facts *facts)
{
	if (facts->end == DRIVER_HANGS)
		doctor_find(DOCTOR_driver_hangs, "%s's driver did not answer within %u s while %s",
		            vendor->name, patient->timeout_ms / 1000, stage_text(facts->stage));
	else if (facts->end == DRIVER_CRASHED)
		doctor_find(DOCTOR_driver_crashes, "%s's driver ended its process (%s) while %s",
		            vendor->name, facts->signal ? strsignal(facts->signal) : "exit",
		            stage_text(facts->stage));
	else if (!facts->complete)
		doctor_find(DOCTOR_driver_lacks, "%s lacks functions that libspill needs: %s",
		            facts->library[0] ? facts->library : *vendor->files, facts->missing);
	else if (facts->error && !has_no_device(vendor, facts))
		doctor_find(DOCTOR_driver_broken, "%s's driver does not start: %s (%d)", vendor->name,
		            facts->error_name, facts->error);
	else if (has_no_device(vendor, facts))
		doctor_find(DOCTOR_no_device, "%s's driver shows no device", vendor->name);
	if (facts->version)
		report_driver(patient, vendor, facts);
	if (facts->complete && facts->missing[0])
		doctor_find(DOCTOR_driver_without, "%s's driver lacks %s", vendor->name, facts->missing);
	if (vendor == &driver_cuda)
		judge_runtime(facts);
}

/* The devices that a program sees, together. */
static void judge_together(const struct doctor_patient *patient, const struct driver_facts *facts)
{
	struct doctor_devices devices = {.count = facts->count};

	if (facts->stage < DRIVER_COPYING || !facts->count)
		return;
	if (facts->count > 1)
		doctor_find(DOCTOR_devices_several, "%u devices are visible", facts->count);
	for (unsigned i = 0; i < facts->count; i++)
		devices.free += facts->devices[i].free;
	doctor_measured_rates(facts, &devices);
	doctor_look_at_model(patient, &devices);
}

/* Facts that a driver gave before it hung or crashed count. */
static void judge_vendor(const struct doctor_patient *patient, const struct driver_vendor *vendor,
                         const struct driver_facts *facts)
{
	judge_driver(patient, vendor, facts);
	for (unsigned i = 0; i < facts->count && facts->stage >= DRIVER_TOUCHING; i++)
		judge_device(vendor, i, &facts->devices[i]);
	if (facts->stage >= DRIVER_COPYING && !patient->quick)
		doctor_look_at_links(patient, vendor, facts);
	judge_together(patient, facts);
}

/* A program that needs a vendor's GPU where there is none. A driver that fails is told by itself. */
static void judge_need(const struct known_vendor *known, const struct driver_facts *facts)
{
	if (!known->need[0] || !facts || facts->end != DRIVER_ENDED)
		return;
	if (facts->stage == DRIVER_ABSENT ? !facts->problem[0]
	                                  : facts->complete && has_no_device(known->vendor, facts))
		doctor_find(DOCTOR_gpu_missing, "%s, and no %s driver shows a GPU here", known->need,
		            known->vendor->name);
}

static const char *find_node(const struct doctor_patient *patient, const struct known_vendor *vendor)
{
	for (size_t i = 0; i < sizeof(vendor->nodes) / sizeof(vendor->nodes[0]); i++) {
		if (vendor->nodes[i] && doctor_is_there(patient, vendor->nodes[i]))
			return vendor->nodes[i];
	}
	return NULL;
}

void doctor_look_at_devices(const struct doctor_patient *patient)
{
	bool any = false;

	for (size_t i = 0; i < VENDORS; i++) {
		const struct driver_facts *facts =
		    driver_try(vendors[i].vendor, patient->timeout_ms, !patient->quick);

		judge_need(&vendors[i], facts);
		if (!facts)
			continue;
		if (facts->stage != DRIVER_ABSENT || facts->end != DRIVER_ENDED) {
			judge_vendor(patient, vendors[i].vendor, facts);
			any = true;
		} else if (facts->problem[0]) {
			doctor_find(DOCTOR_driver_broken, "%s's driver cannot be loaded: %s",
			            vendors[i].vendor->name, facts->problem);
			any = true;
		} else if (find_node(patient, &vendors[i])) {
			doctor_find(DOCTOR_driver_unreachable, "%s is there, and no %s",
			            find_node(patient, &vendors[i]), *vendors[i].vendor->files);
			any = true;
		}
	}
	if (!any)
		doctor_find(DOCTOR_no_driver, "no GPU driver: neither libcuda.so.1 nor libamdhip64.so");
}
