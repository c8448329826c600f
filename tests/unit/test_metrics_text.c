/* The text of log.metrics: its families and samples, their labels, and how it comes in parts. */
#define SETUP setup
#include "unit.h"

#include <stdio.h>
#include <string.h>

#include "metrics_text.h"

static char collected[1 << 20];
static unsigned times_full;

static void collect(struct spill_metrics_output *output)
{
	times_full++;
	strcat(collected, output->text.buffer);
	output->text = spill_text_begin(output->text.buffer, output->text.size);
}

static void compose(struct spill_metrics *metrics)
{
	static char buffer[2 * SPILL_METRICS_SAMPLE];
	struct spill_metrics_output output = {spill_text_begin(buffer, sizeof(buffer)), collect};
	metrics->mode = "spill";
	metrics->backend = "cuda";
	spill_metrics_compose(metrics, &output);
	collect(&output);
}

static unsigned count(const char *part)
{
	unsigned found = 0;
	for (const char *at = collected; (at = strstr(at, part)); at += strlen(part))
		found++;
	return found;
}

static int setup(void **state)
{
	collected[0] = '\0';
	times_full = 0;
	return 0;
}

#define OF_PROCESS(name) name "{program=\"p\",pid=\"7\""
#define OF_DEVICE(name, device) OF_PROCESS(name) ",device=\"" device "\""

/* Labels and values as they stand. Of each device that whose size, or limit, is known. */
TEST(process_and_devices)
{
	static struct spill_metrics metrics = {
	    .program = "p",
	    .pid = 7,
	    .start_us = 5000001,
	    .running = true,
	    .devices = 3,
	    .device = {{.name = "One", .uuid = "GPU-1", .pci = "0000:01:00.0", .limit = UINT64_MAX},
	               {.name = "Two", .uuid = "GPU-2", .pci = "0000:02:00.0", .bytes = 2000, .limit = 500},
	               {.name = "Three", .bytes = 3000, .limit = 0}}};
	compose(&metrics);
	char *end = strstr(collected, "# HELP spill_memory_bytes ");
	assert_non_null(end);
	*end = '\0';
	assert_string_equal(collected,
	                    "# HELP spill_info Version of libspill and its mode in this process. Always 1.\n"
	                    "# TYPE spill_info gauge\n" OF_PROCESS(
	                        "spill_info") ",version=\"" SPILL_VERSION
	                                      "\",mode=\"spill\",backend=\"cuda\"} 1\n"
	                                      "# HELP spill_process_running 1 while the process runs. The "
	                                      "last file of a process has 0.\n"
	                                      "# TYPE spill_process_running gauge\n" OF_PROCESS(
	                                          "spill_process_running") "} 1\n"
	                                                                   "# HELP "
	                                                                   "spill_process_start_time_seconds "
	                                                                   "Time of the first GPU memory "
	                                                                   "call of the process, in "
	                                                                   "seconds since 1970.\n"
	                                                                   "# TYPE "
	                                                                   "spill_process_start_time_seconds "
	                                                                   "gauge\n" OF_PROCESS(
	                                                                       "spill_process_start_time_"
	                                                                       "seconds") "} 5.000001\n"
	                                                                                  "# HELP "
	                                                                                  "spill_device_info "
	                                                                                  "A device that the "
	                                                                                  "process sees. "
	                                                                                  "Always 1.\n"
	                                                                                  "# TYPE "
	                                                                                  "spill_device_info "
	                                                                                  "gauge\n" OF_DEVICE("spill_device_info", "0") ",name=\"One\",uuid=\"GPU-1\",pci=\"0000:01:00.0\"} 1\n" OF_DEVICE("spill_device_info", "1") ",name=\"Two\",uuid=\"GPU-2\",pci=\"0000:02:00.0\"} 1\n" OF_DEVICE(
	                                                                                      "spill_device_"
	                                                                                      "info",
	                                                                                      "2") ",name="
	                                                                                           "\"Three\""
	                                                                                           ",uuid="
	                                                                                           "\"\",pci="
	                                                                                           "\"\"} 1\n"
	                                                                                           "# HELP "
	                                                                                           "spill_"
	                                                                                           "device_"
	                                                                                           "capacity_"
	                                                                                           "bytes "
	                                                                                           "Memory "
	                                                                                           "of the "
	                                                                                           "device.\n"
	                                                                                           "# TYPE "
	                                                                                           "spill_"
	                                                                                           "device_"
	                                                                                           "capacity_"
	                                                                                           "bytes "
	                                                                                           "gauge"
	                                                                                           "\n" OF_DEVICE("spill_device_capacity_bytes", "1") "} 2000\n" OF_DEVICE(
	                                                                                               "spill"
	                                                                                               "_devi"
	                                                                                               "ce_"
	                                                                                               "capac"
	                                                                                               "ity_"
	                                                                                               "byte"
	                                                                                               "s",
	                                                                                               "2") "} 3000\n"
	                                                                                                    "# HELP spill_device_limit_bytes Limit of the process on the device (device.limit).\n"
	                                                                                                    "# TYPE spill_device_limit_bytes gauge\n" OF_DEVICE(
	                                                                                                        "spill_device_limit_bytes",
	                                                                                                        "1") "} 500\n" OF_DEVICE("spill_device_limit_bytes",
	                                                                                                                                 "2") "} 0\n");
}

/* The samples of a family are together, behind its help and type. */
TEST(each_sample_is_of_the_family_above)
{
	static struct spill_metrics metrics = {.program = "p", .devices = 2};
	char name[100] = "";
	unsigned families = 0, samples = 0;
	compose(&metrics);
	for (const char *line = collected; *line; line = strchr(line, '\n') + 1) {
		if (sscanf(line, "# HELP %99[a-z_]", name) == 1) {
			families++;
			char type[120];
			snprintf(type, sizeof(type), "\n# TYPE %s ", name);
			assert_ptr_equal(strstr(line, type), strchr(line, '\n'));
			line = strchr(line, '\n') + 1;
			continue;
		}
		samples++;
		assert_int_equal(strncmp(line, name, strlen(name)), 0);
		assert_int_equal(line[strlen(name)], '{');
	}
	assert_int_equal(families, count("# TYPE "));
	assert_int_equal(families, count("# HELP "));
	assert_true(samples > families);
}

/* Then there is nothing to say of devices, and one part is enough. */
TEST(a_process_without_devices)
{
	static struct spill_metrics metrics = {.program = "p"};
	compose(&metrics);
	assert_null(strstr(collected, "device_capacity"));
	assert_null(strstr(collected, "spill_memory_bytes"));
	assert_int_equal(times_full, 1);
}

TEST(names_are_escaped_and_plain)
{
	static struct spill_metrics metrics = {.program = "a\"b\\c\nd\x1b[\xff", .pid = 7, .devices = 1};
	metrics.start_us = 1700000000000012;
	metrics.totals[0].totals.away.moves_us = 2000003;
	compose(&metrics);
	assert_true(strstr(collected, "\nspill_process_running{program=\"a\\\"b\\\\c?d?[?\",pid=\"7\"} 0\n"));
	assert_true(strstr(collected, "spill_process_start_time_seconds{") &&
	            strstr(collected, "} 1700000000.000012\n"));
	assert_true(strstr(collected, "\nspill_held_up_seconds_total{") && strstr(collected, "} 2.000003\n"));
}

/* The longest names on every device: the buffer is emptied in time, and nothing is cut. */
TEST(all_devices_fit)
{
	static struct spill_metrics metrics = {.devices = SPILL_DEVICES};
	memset(metrics.program, '"', sizeof(metrics.program) - 1);
	for (unsigned i = 0; i < SPILL_DEVICES; i++) {
		memset(metrics.device[i].name, '\\', sizeof(metrics.device[i].name) - 1);
		memset(metrics.device[i].uuid, '"', sizeof(metrics.device[i].uuid) - 1);
		metrics.device[i].bytes = metrics.device[i].limit = UINT64_MAX - 1;
		metrics.totals[i].totals.live.device = UINT64_MAX - 1;
	}
	compose(&metrics);
	assert_true(times_full > 2 * SPILL_DEVICES);
	assert_true(count("\nspill_device_info{") == SPILL_DEVICES);
	assert_true(count(",place=\"device\"} 18446744073709551614\n") == SPILL_DEVICES);
	assert_true(count("\nspill_held_up_seconds_total{") == SPILL_DEVICES);
	for (const char *line = collected; *line; line = strchr(line, '\n') + 1)
		assert_true(*line == '#' || strncmp(line, "spill_", 6) == 0);
}
