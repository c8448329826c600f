/* spill doctor: how fast the links are, and what decode would cost over them beside the program's own CPU offload. */
#include <stdio.h>

#include "cli.h"
#include "decode.h"
#include "doctor.h"
#include "doctor_driver.h"
#include "put.h"

#define GIB ((uint64_t)1 << 30)
/* GB/s of PCIe 3.0 x8: 7.88 on the wire (PCI Express Base Specification 3.0), of which copies get about four fifths. */
#define SLOW 6.0

static const uint64_t usual[] = {GIB / 2, GIB, 2 * GIB, 4 * GIB, 8 * GIB};
#define USUAL (sizeof(usual) / sizeof(usual[0]))

/* Of all vendors, in the order in which they were looked at. */
static struct {
	const struct driver_vendor *vendor;
	unsigned device;
	const struct driver_link *link;
} seen[2 * SPILL_DEVICES];
static unsigned seen_count;
static const uint64_t *sizes = usual;
static unsigned size_count = USUAL;
static struct host_speed memory;

/* "10.4, 20.8 ms"; in `text`. */
static void list(char *text, size_t room, double (*cost)(uint64_t, double), double rate)
{
	size_t used = 0;

	for (unsigned i = 0; i < size_count && used < room; i++)
		used += (size_t)snprintf(text + used, room - used, "%s%.*f", i ? ", " : "",
		                         cost(sizes[i], rate) < 10 ? 1 : 0, cost(sizes[i], rate));
}

/* The simulated GPU's figures are true of nothing but itself. */
static const char *mark(const struct driver_link *link)
{
	return link->simulated ? " (simulated)" : "";
}

static void predict(unsigned device, const struct driver_link *link)
{
	static const enum doctor_finding verdicts[] = {[DECODE_CPU_FASTER] = DOCTOR_offload_faster,
	                                               [DECODE_CPU_SIMILAR] = DOCTOR_offload_similar,
	                                               [DECODE_CPU_SLOWER] = DOCTOR_offload_slower};
	char costs[256], by_cpu[256], of[128];
	size_t used = 0;

	for (unsigned i = 0; i < size_count; i++)
		used += (size_t)snprintf(of + used, sizeof(of) - used, "%s%s", i ? ", " : "",
		                         doctor_size(sizes[i]));
	list(costs, sizeof(costs), decode_over_link, link->to_device);
	doctor_find(DOCTOR_decode,
	            "device %u%s: with %s of weights in host memory a token of decode takes %s ms longer",
	            device, mark(link), of, costs);
	if (memory.rate <= 0)
		return;
	list(by_cpu, sizeof(by_cpu), decode_by_cpu, memory.rate);
	doctor_find(
	    verdicts[decode_compare(link->to_device, memory.rate)],
	    "device %u%s: %u threads read the host's memory at %.1f GB/s (%u MiB, for 100 ms): to read "
	    "the same weights the CPU needs %s ms a token at least",
	    device, mark(link), memory.threads, memory.rate, memory.mib, by_cpu);
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
	    device, mark(link), link->to_device, link->from_device, doctor_size(link->bytes),
	    link->simulated ? "; it has no link: these are copies within the host's memory" : "");
	if (memory.rate <= 0)
		memory = host_speed();
	predict(device, link);
}

void doctor_look_at_links(const struct doctor_patient *patient, const struct driver_vendor *vendor,
                          const struct driver_facts *facts)
{
	if (patient->overflow) {
		sizes = &patient->overflow;
		size_count = 1;
	}
	/* The last may not have come to its end. */
	for (unsigned i = 0; i < facts->count && (facts->stage == DRIVER_DONE || i < facts->device); i++) {
		judge_link(i, &facts->devices[i].link);
		seen[seen_count].vendor = vendor;
		seen[seen_count].device = i;
		seen[seen_count++].link = &facts->devices[i].link;
	}
}

static void print_decode(const struct driver_link *link)
{
	fputs(",\"decode\":[", stdout);
	for (unsigned i = 0; i < size_count && link->to_device > 0; i++) {
		cli_printf("%s{\"bytes\":%llu,\"ms\":%.3f,\"cpu_ms\":", i ? "," : "",
		           (unsigned long long)sizes[i], decode_over_link(sizes[i], link->to_device));
		if (memory.rate > 0)
			printf("%.3f}", decode_by_cpu(sizes[i], memory.rate));
		else
			fputs("null}", stdout);
	}
	putchar(']');
}

static void print_rate(const char *name, double rate)
{
	if (rate > 0)
		cli_printf(",\"%s\":%.3f", name, rate);
	else
		cli_printf(",\"%s\":null", name);
}

void doctor_print_links(void)
{
	putchar('[');
	for (unsigned i = 0; i < seen_count; i++) {
		cli_printf("%s{\"vendor\":", i ? "," : "");
		cli_print_json_string(stdout, seen[i].vendor->name);
		cli_printf(",\"device\":%u,\"simulated\":%s", seen[i].device,
		           seen[i].link->simulated ? "true" : "false");
		print_rate("to_device", seen[i].link->to_device);
		print_rate("from_device", seen[i].link->from_device);
		print_rate("host_memory", memory.rate);
		print_decode(seen[i].link);
		putchar('}');
	}
	putchar(']');
}
