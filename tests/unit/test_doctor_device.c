/* What `spill doctor` says of the devices of drivers that work, and of their links. */
#include "doctor_trial.h"

/* -- devices --------------------------------------------------------------------------------------- */

TEST_WITH(what_a_device_is, nothing, NULL)
{
	struct driver_device *device = &cuda.devices[0];

	cuda = works(1);
	device->identity.name[0] = '\0';
	device->concurrent = false;
	device->pageable = true;
	device->capabilities = SPILL_CAN_SPLIT | SPILL_IS_INTEGRATED;
	finds("device: device 0: without a name, 8.00 GiB, 1.00 GiB free, integrated: its memory is the "
	      "host's; "
	      "concurrent managed access no, pageable access yes; can split, no host memory\n"
	      "device_memory: device 0 is integrated: its memory is the host's\n"
	      "no_managed: device 0 has no concurrent managed access\n");
	cuda = works(1);
	device->host_tables = true;
	device->capabilities = SPILL_CAN_MANAGED | SPILL_CAN_HOST | SPILL_IS_COHERENT;
	finds(
	    "device: device 0: Card, 8.00 GiB, 1.00 GiB free, coherent: it reads the host's memory over a "
	    "cache-coherent link; concurrent managed access yes, pageable access by the host's page tables; "
	    "can managed, host\n"
	    "device_memory: device 0 is coherent: it reads the host's memory over a cache-coherent link\n"
	    "no_vmm: device 0: virtual memory management on the device is not offered\n");
	cuda = works(1);
	device->capabilities = ALL & ~(unsigned)SPILL_CAN_SPLIT;
	device->vmm = true;
#define REST \
	"device: device 0: Card, 8.00 GiB, 1.00 GiB free, discrete; concurrent managed access yes, " \
	"pageable " \
	"access no; can move, managed, host\nno_vmm: device 0: virtual memory management on the host "
	finds(REST "is not offered\n");
	device->host_vmm = true;
	finds(REST "is offered, but some function of it is not offered\n");
}

TEST_WITH(a_device_of_amd, nothing, NULL)
{
	struct driver_device *device = &hip.devices[0];

	hip = works(1);
	device->capabilities = SPILL_CAN_HOST;
#define HIP_CARD(memory, pageable) \
	"device: device 0: Card, 8.00 GiB, 1.00 GiB free, " memory \
	"; concurrent managed access yes, pageable access " pageable "; can host\n"
	finds(HIP_CARD("discrete", "no") "no_xnack: device 0: XNACK is off, or the card has none\n");
	device->pageable = true;
	finds(HIP_CARD("discrete", "yes"));
	device->pageable = false;
	device->capabilities |= SPILL_IS_INTEGRATED;
	finds(HIP_CARD("integrated: its memory is the host's",
	               "no") "device_memory: device 0 is integrated: its memory is the host's\n");
}

/* More than an eighth. */
TEST_WITH(what_others_hold, nothing, NULL)
{
	struct driver_device *device = &cuda.devices[0];

	cuda = works(1);
	device->held = GIB;
	device->users = 2;
	device->user[0] = (struct cli_card_user){.pid = 11, .bytes = GIB, .name = "a"};
	device->user[1] = (struct cli_card_user){.pid = 12, .bytes = UINT64_MAX};
	finds(CARD_0);
	device->held = GIB + 8 * MIB;
	finds(CARD_0
	      "device_held: device 0: others hold 1.01 GiB of 8.00 GiB: a (pid 11) 1.00 GiB, pid 12\n");
	device->users = 0;
	finds(CARD_0 "device_held: device 0: others hold 1.01 GiB of 8.00 GiB\n");
}

/* Each kind of memory: not tried, and then tried with success, failing, and full. */
TEST_WITH(what_a_trial_found, nothing, NULL)
{
	static const char *const kinds[] = {"a context", "a chunk on the device", "a chunk on the host",
	                                    "managed memory", "pinned host memory"};
	struct driver_device *device = &cuda.devices[0];
	char expected[1024];

	for (unsigned kind = 0; kind < TOUCHES; kind++) {
		struct driver_touch *touch = &device->touch[kind];

		cuda = works(1);
		*touch = (struct driver_touch){.error = 2, .call = "map", .name = "NO"};
		finds(CARD_0);
		touch->tried = true;
		snprintf(expected, sizeof(expected), "%stouch_fails: device 0: %s: map: NO\n", CARD_0,
		         kinds[kind]);
		finds(expected);
		touch->full = true;
		snprintf(expected, sizeof(expected), "%stouch_full: device 0: %s: map: NO\n", CARD_0,
		         kinds[kind]);
		finds(expected);
		touch->error = 0;
		finds(CARD_0);
	}
	cuda = works(1);
	for (unsigned probed = 0; probed < 2; probed++) {
		static const char *const said_of[][2] = {
		    [SPILL_PROBE_WORKS] = {"", "; a chunk was moved there and back"},
		    [SPILL_PROBE_LATER] = {"touch_full: device 0: no memory for a trial move of a chunk\n",
		                           ""},
		    [SPILL_PROBE_FAILS] = {"move_fails: device 0: a trial move of a chunk did not work\n",
		                           ""}};
		static const enum spill_probe moves[] = {SPILL_PROBE_WORKS, SPILL_PROBE_LATER,
		                                         SPILL_PROBE_FAILS};

		device->probed = probed;
		for (unsigned i = 0; i < 3; i++) {
			device->move = moves[i];
			snprintf(expected, sizeof(expected), "%.*s%s\n%s", (int)sizeof(CARD_0) - 2, CARD_0,
			         probed ? said_of[moves[i]][1] : "", probed ? said_of[moves[i]][0] : "");
			finds(expected);
		}
	}
}

/* -- links ----------------------------------------------------------------------------------------- */

#define LINK "device 0: 5.9 GB/s from pinned host memory, 6.1 GB/s back (median of copies of 64.00 MiB)\n"
#define FIVE "512.00 MiB, 1.00 GiB, 2.00 GiB, 4.00 GiB, 8.00 GiB of weights in host memory "

/* All devices of a vendor serve a program's model together, with the link of the first. */
TEST_WITH(devices_together, nothing, NULL)
{
	cuda = works(2);
	cuda.devices[0].link = (struct driver_link){.to_device = 5, .from_device = 6, .simulated = true};
	finds(CARD_0 CARD("1", "2.00 GiB") "devices_several: 2 devices are visible\n");
	assert_int_equal(models, 1);
	assert_int_equal(together.count, 2);
	assert_int_equal(together.free, 3 * GIB);
	assert_float_equal(together.copy_rate, 5, 0);
	assert_float_equal(together.memory_rate, 0, 0);
	assert_true(together.simulated);
	assert_int_equal(speeds, 0);
	cuda.stage = DRIVER_TOUCHING;
	models = 0;
	cuda.end = DRIVER_CRASHED;
	finds("driver_crashes: NVIDIA's driver ended its process (exit) while making memory on a "
	      "device\n" CARD_0 CARD("1", "2.00 GiB"));
	assert_int_equal(models, 0);
}

TEST_WITH(a_link_that_was_not_measured, nothing, NULL)
{
	patient.quick = false;
	cuda = works(1);
	for (unsigned i = 0; i < 3; i++) {
		cuda.devices[0].link =
		    (struct driver_link){.to_device = i == 1, .from_device = i == 2, .problem = "why"};
		finds(CARD_0 "link_unknown: device 0: the link was not measured: why\n");
	}
	/* Of the device at which it ended nothing is known. */
	cuda.stage = DRIVER_COPYING;
	cuda.end = DRIVER_HANGS;
#define HANGS \
	"driver_hangs: NVIDIA's driver did not answer within 7 s while copying to and from a " \
	"device\n" CARD_0
	finds(HANGS);
	cuda.device = 1;
	finds(HANGS "link_unknown: device 0: the link was not measured: why\n");
	assert_int_equal(speeds, 0);
}

/* One that is slow, and what decode costs over it. */
TEST_WITH(a_link, nothing, NULL)
{
	struct driver_link *link = &cuda.devices[0].link;

	patient.quick = false;
	cuda = works(1);
	*link = (struct driver_link){.to_device = 5.9, .from_device = 6.1, .bytes = 64 * MIB};
#define TAKES "a token of decode takes 98, 196, 391, 783, 1566 ms longer\n"
	finds(CARD_0 "link_slow: " LINK "decode: device 0: with " FIVE TAKES);
	assert_int_equal(speeds, 1);
	host = (struct host_speed){.rate = 100, .threads = 3, .mib = 256};
	finds(CARD_0
	      "link_slow: " LINK "decode: device 0: with " FIVE TAKES
	      "offload_faster: device 0: 3 threads read the host's memory at 100.0 GB/s (256 MiB, for 100 "
	      "ms): to read the same weights the CPU needs 5.4, 11, 21, 43, 86 ms a token at least\n");
	assert_int_equal(speeds, 2);
	assert_float_equal(together.memory_rate, 100, 0);
	assert_float_equal(together.copy_rate, 5.9, 0);
	link->simulated = true;
	link->to_device = 60;
	patient.overflow = 3 * GIB;
	finds(
	    CARD_0
	    "link: device 0 (simulated): 60.0 GB/s from pinned host memory, 6.1 GB/s back (median of copies "
	    "of "
	    "64.00 MiB); it has no link: these are copies within the host's memory\n"
	    "decode: device 0 (simulated): with 3.00 GiB of weights in host memory a token of decode takes "
	    "58 "
	    "ms longer\n"
	    "offload_similar: device 0 (simulated): 3 threads read the host's memory at 100.0 GB/s (256 MiB, "
	    "for 100 ms): to read the same weights the CPU needs 32 ms a token at least\n");
	assert_int_equal(speeds, 2); /* measured once */
	link->to_device = 5.9;
	finds(
	    CARD_0
	    "link: device 0 (simulated): 5.9 GB/s from pinned host memory, 6.1 GB/s back (median of copies "
	    "of "
	    "64.00 MiB); it has no link: these are copies within the host's memory\n"
	    "decode: device 0 (simulated): with 3.00 GiB of weights in host memory a token of decode takes "
	    "587 "
	    "ms longer\n"
	    "offload_faster: device 0 (simulated): 3 threads read the host's memory at 100.0 GB/s (256 MiB, "
	    "for 100 ms): to read the same weights the CPU needs 32 ms a token at least\n");
	link->simulated = false;
	link->to_device = 6;
	finds(
	    CARD_0
	    "link: device 0: 6.0 GB/s from pinned host memory, 6.1 GB/s back (median of copies of 64.00 "
	    "MiB)\n"
	    "decode: device 0: with 3.00 GiB of weights in host memory a token of decode takes 577 ms "
	    "longer\n"
	    "offload_faster: device 0: 3 threads read the host's memory at 100.0 GB/s (256 MiB, for 100 ms): "
	    "to read the same weights the CPU needs 32 ms a token at least\n");
}
