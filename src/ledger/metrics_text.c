#include "metrics_text.h"

#include <stddef.h>

/* A sample of each device: its own label, and its figure in struct spill_device_totals. */
struct sample {
	const char *label; /* "place=\"host\"", or "" */
	size_t offset;
};

#define FIGURE(member) offsetof(struct spill_device_totals, member)

/* THE list of families with figures of the ledger. All figures are uint64_t. */
static const struct family {
	const char *name, *type, *help;
	bool microseconds; /* shown as seconds */
	struct sample samples[4];
} families[] = {
    {"spill_memory_bytes",
     "gauge",
     "Memory that the process holds now, by place.",
     false,
     {{"place=\"device\"", FIGURE(totals.live.device)},
      {"place=\"host\"", FIGURE(totals.live.host)},
      {"place=\"managed\"", FIGURE(totals.live.managed)}}},
    {"spill_memory_peak_bytes",
     "gauge",
     "Most memory that the process has held at a time, by place.",
     false,
     {{"place=\"device\"", FIGURE(totals.peak.device)},
      {"place=\"host\"", FIGURE(totals.peak.host)},
      {"place=\"managed\"", FIGURE(totals.peak.managed)}}},
    {"spill_off_device_bytes",
     "gauge",
     "Memory that libspill holds off the device now. The program asked for it on the device.",
     false,
     {{"", FIGURE(away)}}},
    {"spill_off_device_peak_bytes",
     "gauge",
     "Most memory that libspill has held off the device at a time.",
     false,
     {{"", FIGURE(totals.away.peak)}}},
    {"spill_allocations_total",
     "counter",
     "Allocations that succeeded.",
     false,
     {{"", FIGURE(totals.allocs)}}},
    {"spill_frees_total", "counter", "Allocations that were freed.", false, {{"", FIGURE(totals.frees)}}},
    {"spill_spills_total",
     "counter",
     "Allocations that libspill placed off the device, in whole or in part.",
     false,
     {{"", FIGURE(totals.spills)}}},
    {"spill_spilled_bytes_total",
     "counter",
     "Bytes of those allocations off the device, by place.",
     false,
     {{"place=\"host\"", FIGURE(totals.spilled.host)},
      {"place=\"managed\"", FIGURE(totals.spilled.managed)}}},
    {"spill_moves_total",
     "counter",
     "Moves of allocations between device and host, in whole or in part.",
     false,
     {{"direction=\"to_host\"", FIGURE(totals.demotions)},
      {"direction=\"to_device\"", FIGURE(totals.promotions)}}},
    {"spill_moved_bytes_total",
     "counter",
     "Bytes that moved.",
     false,
     {{"direction=\"to_host\"", FIGURE(totals.demoted)},
      {"direction=\"to_device\"", FIGURE(totals.promoted)}}},
    {"spill_refused_requests_total",
     "counter",
     "Requests that ended in an out of memory that the program saw.",
     false,
     {{"", FIGURE(totals.ooms)}}},
    {"spill_held_up_seconds_total",
     "counter",
     "Time that moves of memory held the program up.",
     true,
     {{"", FIGURE(totals.away.moves_us)}}},
    {"spill_in_place_bytes_total",
     "counter",
     "Bytes on the host that kernels used over the link, where they are, by estimate.",
     false,
     {{"", FIGURE(totals.away.in_place.bytes)}}},
    {"spill_in_place_seconds_total",
     "counter",
     "Time by which kernels took longer for that, by estimate.",
     true,
     {{"", FIGURE(totals.away.in_place.us)}}},
};

/* A label's value: shown characters only, with \ and " escaped. */
static void add_value(struct spill_text *text, const char *value)
{
	char plain[512];
	struct spill_text copy = spill_text_begin(plain, sizeof(plain));
	spill_text_plain(&copy, value);
	for (const char *next = plain; *next; next++) {
		if (*next == '\\' || *next == '"')
			spill_text_add(text, "\\");
		spill_text_bytes(text, next, 1);
	}
}

static void add_label(struct spill_text *text, const char *name, const char *value)
{
	spill_text_format(text, ",%s=\"", name);
	add_value(text, value);
	spill_text_add(text, "\"");
}

static void add_family(struct spill_metrics_output *output, const char *name, const char *type,
                       const char *help)
{
	spill_text_format(&output->text, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

/* Of the process; a sample of a device has its number, too. */
#define NO_DEVICE SPILL_DEVICES

/* Adds "NAME{program="…",pid="…"", open for more labels. */
static struct spill_text *begin_sample(const struct spill_metrics *metrics,
                                       struct spill_metrics_output *output, const char *name, unsigned device)
{
	struct spill_text *text = &output->text;
	spill_text_format(text, "%s{program=\"", name);
	add_value(text, metrics->program);
	spill_text_format(text, "\",pid=\"%llu\"", (unsigned long long)metrics->pid);
	if (device != NO_DEVICE)
		spill_text_format(text, ",device=\"%u\"", device);
	return text;
}

/* `value` is in units of 10^-digits. */
static void end_sample(struct spill_metrics_output *output, uint64_t value, unsigned digits)
{
	struct spill_text *text = &output->text;
	uint64_t unit = 1;
	for (unsigned i = 0; i < digits; i++)
		unit *= 10;
	spill_text_format(text, "} %llu%s", (unsigned long long)(value / unit), digits ? "." : "");
	for (uint64_t rest = value % unit; unit > 1; rest %= unit)
		spill_text_number(text, rest / (unit /= 10));
	spill_text_add(text, "\n");
	if (text->size - text->length < SPILL_METRICS_SAMPLE)
		output->full(output);
}

static void add_process(const struct spill_metrics *metrics, struct spill_metrics_output *output)
{
	add_family(output, "spill_info", "gauge",
	           "Version of libspill and its mode in this process. Always 1.");
	struct spill_text *text = begin_sample(metrics, output, "spill_info", NO_DEVICE);
	add_label(text, "version", SPILL_VERSION);
	add_label(text, "mode", metrics->mode);
	add_label(text, "backend", metrics->backend);
	end_sample(output, 1, 0);
	add_family(output, "spill_process_running", "gauge",
	           "1 while the process runs. The last file of a process has 0.");
	begin_sample(metrics, output, "spill_process_running", NO_DEVICE);
	end_sample(output, metrics->running, 0);
	add_family(output, "spill_process_start_time_seconds", "gauge",
	           "Time of the first GPU memory call of the process, in seconds since 1970.");
	begin_sample(metrics, output, "spill_process_start_time_seconds", NO_DEVICE);
	end_sample(output, metrics->start_us, 6);
}

static void add_devices(const struct spill_metrics *metrics, struct spill_metrics_output *output)
{
	add_family(output, "spill_device_info", "gauge", "A device that the process sees. Always 1.");
	for (unsigned i = 0; i < metrics->devices; i++) {
		struct spill_text *text = begin_sample(metrics, output, "spill_device_info", i);
		add_label(text, "name", metrics->device[i].name);
		add_label(text, "uuid", metrics->device[i].uuid);
		add_label(text, "pci", metrics->device[i].pci);
		end_sample(output, 1, 0);
	}
}

/* A gauge of the devices for which it is known. `offset`: of its uint64_t in the device. */
static void add_known(const struct spill_metrics *metrics, struct spill_metrics_output *output,
                      const char *name, const char *help, size_t offset, uint64_t unknown)
{
	bool begun = false;
	for (unsigned i = 0; i < metrics->devices; i++) {
		uint64_t value = *(const uint64_t *)((const char *)&metrics->device[i] + offset);
		if (value == unknown)
			continue;
		if (!begun)
			add_family(output, name, "gauge", help);
		begun = true;
		begin_sample(metrics, output, name, i);
		end_sample(output, value, 0);
	}
}

static void add_figures(const struct spill_metrics *metrics, struct spill_metrics_output *output,
                        const struct family *family, unsigned device)
{
	for (const struct sample *sample = family->samples; sample->label; sample++) {
		uint64_t value = *(const uint64_t *)((const char *)&metrics->totals[device] + sample->offset);
		struct spill_text *text = begin_sample(metrics, output, family->name, device);
		spill_text_format(text, "%s%s", sample->label[0] ? "," : "", sample->label);
		end_sample(output, value, family->microseconds ? 6 : 0);
	}
}

void spill_metrics_compose(const struct spill_metrics *metrics, struct spill_metrics_output *output)
{
	add_process(metrics, output);
	add_devices(metrics, output);
	add_known(metrics, output, "spill_device_capacity_bytes", "Memory of the device.",
	          offsetof(struct spill_live_page_device, bytes), 0);
	add_known(metrics, output, "spill_device_limit_bytes",
	          "Limit of the process on the device (device.limit).",
	          offsetof(struct spill_live_page_device, limit), UINT64_MAX);
	for (size_t i = 0; metrics->devices && i < sizeof(families) / sizeof(families[0]); i++) {
		const struct family *family = &families[i];
		add_family(output, family->name, family->type, family->help);
		for (unsigned device = 0; device < metrics->devices; device++)
			add_figures(metrics, output, family, device);
	}
}
