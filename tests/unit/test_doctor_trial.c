/* What `spill doctor` says of drivers: absent, failing, old, and those that a program needs. */
#include "doctor_trial.h"

static char root[] = "/tmp/spill-devices-XXXXXX";

TEST_WITH(no_driver, nothing, NULL)
{
	static const char none[] = "no_driver: no GPU driver: neither libcuda.so.1 nor libamdhip64.so\n";

	finds(none);
	cuda_starts = hip_starts = false;
	finds(none);
	assert_int_equal(models, 0);
}

TEST_WITH(device_files_without_a_driver, nothing, NULL)
{
	there[0] = "/dev/nvidiactl";
	there[1] = "/dev/dxg";
	finds("driver_unreachable: /dev/nvidiactl is there, and no libcuda.so.1\n");
	there[0] = "/dev/kfd";
	finds("driver_unreachable: /dev/dxg is there, and no libcuda.so.1\n"
	      "driver_unreachable: /dev/kfd is there, and no libamdhip64.so.7\n");
	/* The loader's words are better. */
	strcpy(cuda.problem, "too short");
	finds("driver_broken: NVIDIA's driver cannot be loaded: too short\n"
	      "driver_unreachable: /dev/kfd is there, and no libamdhip64.so.7\n");
	there[0] = NULL;
	finds("driver_broken: NVIDIA's driver cannot be loaded: too short\n");
}

/* What it told before counts: devices once it makes memory on them. */
TEST_WITH(a_driver_that_does_not_end, nothing, NULL)
{
	static const char *const stages[] = {"beginning",
	                                     "being loaded",
	                                     "starting",
	                                     "telling its devices",
	                                     "making memory on a device",
	                                     "copying to and from a device",
	                                     "ending"};

	for (enum driver_stage stage = DRIVER_ABSENT; stage <= DRIVER_DONE; stage++) {
		char expected[1024];
		const char *card = stage >= DRIVER_TOUCHING ? CARD_0 : "";

		cuda = works(1);
		cuda.stage = stage;
		cuda.end = DRIVER_HANGS;
		models = 0;
		snprintf(expected, sizeof(expected),
		         "driver_hangs: NVIDIA's driver did not answer within 7 s while %s\n%s",
		         stages[stage], card);
		finds(expected);
		assert_int_equal(models, stage >= DRIVER_COPYING);
		cuda.end = DRIVER_CRASHED;
		snprintf(expected, sizeof(expected),
		         "driver_crashes: NVIDIA's driver ended its process (exit) while %s\n%s",
		         stages[stage], card);
		finds(expected);
	}
	cuda.signal = 11;
	finds("driver_crashes: NVIDIA's driver ended its process (Segmentation fault) while ending\n" CARD_0);
}

TEST_WITH(a_driver_that_does_not_start, nothing, NULL)
{
	cuda = (struct driver_facts){.stage = DRIVER_STARTING, .missing = "cuA"};
	finds("driver_lacks: libcuda.so.1 lacks functions that libspill needs: cuA\n");
	strcpy(cuda.library, "/lib/x");
	finds("driver_lacks: /lib/x lacks functions that libspill needs: cuA\n");
	cuda = (struct driver_facts){
	    .stage = DRIVER_STARTING, .complete = true, .error = 803, .error_name = "MISMATCH"};
	finds("driver_broken: NVIDIA's driver does not start: MISMATCH (803)\n");
	cuda.count = 1; /* an error counts more */
	cuda.error = 100;
	finds("no_device: NVIDIA's driver shows no device\n");
	cuda.error = 101;
	finds("driver_broken: NVIDIA's driver does not start: MISMATCH (101)\n");
	cuda = works(0);
	finds("no_device: NVIDIA's driver shows no device\n");
	cuda = (struct driver_facts){.stage = DRIVER_ABSENT};
	hip = (struct driver_facts){
	    .stage = DRIVER_STARTING, .complete = true, .error = 101, .error_name = "INVALID"};
	finds("no_device: AMD's driver shows no device\n");
	hip.error = 100;
	finds("no_device: AMD's driver shows no device\n");
	hip.error = 102;
	finds("driver_broken: AMD's driver does not start: INVALID (102)\n");
	assert_int_equal(models, 0);
}

/* CUDA 12.2 brought chunks on the host, 12.5 the events that moves need. */
TEST_WITH(versions, nothing, NULL)
{
	static const struct {
		int version;
		const char *expected;
	} cases[] = {
	    {13010, "driver: NVIDIA driver for CUDA 13.1, lib\n"},
	    {12050, "driver: NVIDIA driver for CUDA 12.5, lib\n"},
	    {12049, "driver: NVIDIA driver for CUDA 12.4, lib\ndriver_old: the driver is of CUDA 12.4\n"},
	    {12020, "driver: NVIDIA driver for CUDA 12.2, lib\ndriver_old: the driver is of CUDA 12.2\n"},
	    {12019, "driver: NVIDIA driver for CUDA 12.1, lib\ndriver_oldest: the driver is of CUDA 12.1\n"},
	    {11080, "driver: NVIDIA driver for CUDA 11.8, lib\ndriver_oldest: the driver is of CUDA 11.8\n"}};
	char command[256];

	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char expected[1024];

		cuda = works(1);
		cuda.version = cases[i].version;
		strcpy(cuda.library, "lib");
		snprintf(expected, sizeof(expected), "%s%s", cases[i].expected, CARD_0);
		finds(expected);
	}
	/* The first line of its module's. */
	snprintf(
	    command, sizeof(command),
	    "mkdir -p %s/proc/driver/nvidia && printf 'NVRM 580\\nGCC\\n' >%s/proc/driver/nvidia/version",
	    root, root);
	assert_int_equal(system(command), 0);
	patient.root = root;
	cuda = works(0);
	cuda.version = 12060;
	strcpy(cuda.library, "lib");
	strcpy(cuda.missing, "cuB");
	hip = cuda;
	hip.version = 60340123;
	hip.missing[0] = '\0';
	finds("no_device: NVIDIA's driver shows no device\n"
	      "driver: NVIDIA driver for CUDA 12.6, lib; NVRM 580\n"
	      "driver_without: NVIDIA's driver lacks cuB\n"
	      "no_device: AMD's driver shows no device\n"
	      "driver: AMD driver for HIP 6.3, lib\n");
}

TEST_WITH(a_newer_runtime, nothing, NULL)
{
	cuda = works(1);
	cuda.version = 13020;
	strcpy(cuda.library, "lib");
	strcpy(doctor_needs.runtime, "prog needs libcudart.so.14");
	for (doctor_needs.runtime_major = 13; doctor_needs.runtime_major <= 14; doctor_needs.runtime_major++)
		finds(doctor_needs.runtime_major == 13 ? "driver: NVIDIA driver for CUDA 13.2, lib\n" CARD_0
		                                       : "driver: NVIDIA driver for CUDA 13.2, lib\n"
		                                         "runtime_newer: prog needs libcudart.so.14, and the "
		                                         "driver is of CUDA 13.2\n" CARD_0);
	cuda.version = 0; /* not known */
	finds(CARD_0);
	cuda = (struct driver_facts){.stage = DRIVER_ABSENT};
	hip = works(0);
	hip.version = 60300000;
	finds("no_device: AMD's driver shows no device\ndriver: AMD driver for HIP 6.3, \n");
}

#define MISSING "gpu_missing: prog needs libcudart, and no NVIDIA driver shows a GPU here\n"

/* Not where the driver itself fails. */
TEST_WITH(a_program_that_needs_a_gpu, nothing, NULL)
{
	strcpy(doctor_needs.cuda, "prog needs libcudart");
	finds(MISSING "no_driver: no GPU driver: neither libcuda.so.1 nor libamdhip64.so\n");
	strcpy(cuda.problem, "too short");
	finds("driver_broken: NVIDIA's driver cannot be loaded: too short\n");
	cuda = works(0);
	finds(MISSING "no_device: NVIDIA's driver shows no device\n");
	cuda.error = 803;
	finds("driver_broken: NVIDIA's driver does not start:  (803)\n");
	cuda = works(0);
	cuda.complete = false;
	finds("driver_lacks: libcuda.so.1 lacks functions that libspill needs: \n");
	cuda = works(0);
	cuda.stage = DRIVER_STARTING;
	cuda.end = DRIVER_HANGS;
	finds("driver_hangs: NVIDIA's driver did not answer within 7 s while starting\n");
	cuda = works(1);
	finds(CARD_0);
	cuda_starts = false;
	finds("no_driver: no GPU driver: neither libcuda.so.1 nor libamdhip64.so\n");
	doctor_needs.cuda[0] = '\0';
	strcpy(doctor_needs.hip, "prog needs libamdhip64");
	finds("gpu_missing: prog needs libamdhip64, and no AMD driver shows a GPU here\n"
	      "no_driver: no GPU driver: neither libcuda.so.1 nor libamdhip64.so\n");
}

static int make_root(void **state)
{
	return mkdtemp(root) ? 0 : -1;
}

static int remove_root(void **state)
{
	char command[64];

	snprintf(command, sizeof(command), "rm -r %s", root);
	return system(command);
}

int main(void)
{
	return run_unit_tests(make_root, remove_root);
}
