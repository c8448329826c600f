/* spill doctor: judges links and predicts the cost of decode, beside CPU offload. */
#include <stdio.h>

#include "doctor.h"
#include "doctor_driver.h"
#include "json_out.h"
#include "put.h"

/* -- cost of decode --------------------------------------------------------------------------- */

/* A margin, not a measurement: a CPU that also computes gets less than the memory's rate. */
#define CPU_MARGIN 2

/*
 * Part of the memory's rate at which llama.cpp's CPU layers read their weights: 72 and 89 of 93 GB/s
 * in two series (16 cores, Q8_0; docs/measurements.md). Slower CPUs and small formats reach less.
 */
#define CPU_SHARE 0.75

static double milliseconds(uint64_t bytes, double rate)
{
	return (double)bytes / rate / 1e6;
}

double decode_over_link(uint64_t bytes, double copy_rate)
{
	return milliseconds(bytes, copy_rate * DECODE_IN_PLACE);
}

double decode_by_cpu(uint64_t bytes, double memory_rate)
{
	return milliseconds(bytes, memory_rate);
}

enum decode_verdict decode_compare(double copy_rate, double memory_rate)
{
	double in_place = copy_rate * DECODE_IN_PLACE;

	if (memory_rate >= CPU_MARGIN * in_place)
		return DECODE_CPU_FASTER;
	return memory_rate > in_place ? DECODE_CPU_SIMILAR : DECODE_CPU_SLOWER;
}

bool decode_offload(const struct decode_model *model, uint64_t free, double copy_rate, double memory_rate,
                    struct decode_offload *result)
{
	uint64_t room = free > DECODE_SCRATCH ? free - DECODE_SCRATCH : 0;
	uint64_t bytes = model->layer_bytes + model->output_bytes;
	double layer = (double)model->layer_bytes / model->layers;

	*result = (struct decode_offload){.needs = bytes + DECODE_SCRATCH, .layers = model->layers};
	if (bytes <= room)
		return false;
	if ((double)room < (double)model->layer_bytes)
		result->layers = (unsigned)((double)room / layer);
	if (copy_rate <= 0 || memory_rate <= 0)
		return true;
	uint64_t left = (uint64_t)((model->layers - result->layers) * layer) + model->output_bytes;
	result->link_ms = decode_over_link(bytes - room, copy_rate);
	result->offload_ms = decode_by_cpu(left, memory_rate) / CPU_SHARE;
	result->offload_is_faster = result->offload_ms < result->link_ms;
	return true;
}

/* -- links ------------------------------------------------------------------------------------ */

#define GIB ((uint64_t)1 << 30)
/* GB/s of copies over PCIe 3.0 x8: four fifths of 7.88 (PCI Express Base Specification). */
#define SLOW 6.0

static const uint64_t default_sizes[] = {GIB / 2, GIB, 2 * GIB, 4 * GIB, 8 * GIB};
#define DEFAULT_SIZES (sizeof(default_sizes) / sizeof(default_sizes[0]))

/* Links of all vendors in the order of the checks. */
static struct {
	const struct driver_vendor *vendor;
	unsigned device;
	const struct driver_link *link;
} measured[2 * SPILL_DEVICES];
static unsigned measured_count;
static const uint64_t *sizes = default_sizes;
static unsigned size_count = DEFAULT_SIZES;
static struct host_speed host;

/* Writes "10.4, 20.8" into `text`: the costs of all sizes. */
static void format_costs(char *text, size_t room, double (*cost)(uint64_t, double), double rate)
{
	size_t used = 0;

	for (unsigned i = 0; i < size_count && used < room; i++)
		used += (size_t)snprintf(text + used, room - used, "%s%.*f", i ? ", " : "",
		                         cost(sizes[i], rate) < 10 ? 1 : 0, cost(sizes[i], rate));
}

/* Marks figures of the simulated GPU. */
static const char *simulated_mark(const struct driver_link *link)
{
	return link->simulated ? " (simulated)" : "";
}

static void predict_decode(unsigned device, const struct driver_link *link)
{
	static const enum doctor_finding verdicts[] = {[DECODE_CPU_FASTER] = DOCTOR_offload_faster,
	                                               [DECODE_CPU_SIMILAR] = DOCTOR_offload_similar,
	                                               [DECODE_CPU_SLOWER] = DOCTOR_offload_slower};
	char costs[256], by_cpu[256], weights[128];
	struct spill_text text = spill_text_begin(weights, sizeof(weights));

	for (unsigned i = 0; i < size_count; i++)
		spill_text_format(&text, "%s%s", i ? ", " : "", spill_size(sizes[i]).text);
	format_costs(costs, sizeof(costs), decode_over_link, link->to_device);
	doctor_find(DOCTOR_decode,
	            "device %u%s: with %s of weights in host memory a token of decode takes %s ms longer",
	            device, simulated_mark(link), weights, costs);
	if (host.rate <= 0)
		return;
	format_costs(by_cpu, sizeof(by_cpu), decode_by_cpu, host.rate);
	doctor_find(
	    verdicts[decode_compare(link->to_device, host.rate)],
	    "device %u%s: %u threads read the host's memory at %.1f GB/s (%u MiB, for 100 ms): to read "
	    "the same weights the CPU needs %s ms a token at least",
	    device, simulated_mark(link), host.threads, host.rate, host.mib, by_cpu);
}

static void judge_link(unsigned device, const struct driver_link *link)
{
	if (link->to_device <= 0 || link->from_device <= 0) {
		doctor_find(DOCTOR_link_unknown, "device %u: the link was not measured: %s", device,
		            link->problem);
		return;
	}
	doctor_find(
	    link->to_device < SLOW && !link->simulated ? DOCTOR_link_slow : DOCTOR_link,
	    "device %u%s: %.1f GB/s from pinned host memory, %.1f GB/s back (median of copies of %s)%s",
	    device, simulated_mark(link), link->to_device, link->from_device, spill_size(link->bytes).text,
	    link->simulated ? "; it has no link: these are copies within the host's memory" : "");
	if (host.rate <= 0)
		host = host_speed();
	predict_decode(device, link);
}

void doctor_look_at_links(const struct doctor_patient *patient, const struct driver_vendor *vendor,
                          const struct driver_facts *facts)
{
	if (patient->overflow) {
		sizes = &patient->overflow;
		size_count = 1;
	}
	/* The measurement of the last device may be incomplete. */
	for (unsigned i = 0; i < facts->count && (facts->stage == DRIVER_DONE || i < facts->device); i++) {
		judge_link(i, &facts->devices[i].link);
		measured[measured_count].vendor = vendor;
		measured[measured_count].device = i;
		measured[measured_count++].link = &facts->devices[i].link;
	}
}

void doctor_measured_rates(const struct driver_facts *facts, struct doctor_devices *devices)
{
	devices->copy_rate = facts->devices[0].link.to_device;
	devices->memory_rate = host.rate;
	devices->simulated = facts->devices[0].link.simulated;
}

static void put_decode(struct spill_json *json, const struct driver_link *link)
{
	spill_json_array(cli_json_key(json, "decode"));
	for (unsigned i = 0; i < size_count && link->to_device > 0; i++) {
		spill_json_object(json);
		cli_json_number(json, "bytes", sizes[i]);
		cli_json_rate(json, "ms", decode_over_link(sizes[i], link->to_device));
		cli_json_rate(json, "cpu_ms", host.rate > 0 ? decode_by_cpu(sizes[i], host.rate) : 0);
		spill_json_object_end(json);
	}
	spill_json_array_end(json);
}

void doctor_put_links(struct spill_json *json)
{
	spill_json_array(cli_json_key(json, "links"));
	for (unsigned i = 0; i < measured_count; i++) {
		const struct driver_link *link = measured[i].link;

		spill_json_object(json);
		cli_json_text(json, "vendor", measured[i].vendor->name);
		cli_json_number(json, "device", measured[i].device);
		cli_json_bool(json, "simulated", link->simulated);
		cli_json_rate(json, "to_device", link->to_device);
		cli_json_rate(json, "from_device", link->from_device);
		cli_json_rate(json, "host_memory", host.rate);
		put_decode(json, link);
		spill_json_object_end(json);
	}
	spill_json_array_end(json);
}
