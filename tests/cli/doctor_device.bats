load doctor.bash

@test "memory that other programs hold is told with their names" {
	machine
	simulated SPILL_SIM_VRAM=8GiB SPILL_SIM_HELD=3GiB SPILL_SIM_COMPUTES="4194305:2147483648 4194306:" -- --root m
	has "warning [device] device 0: others hold 3.00 GiB of 8.00 GiB: pid 4194305 2.00 GiB, pid 4194306"
	has "it spills earlier"
	simulated SPILL_SIM_VRAM=8GiB SPILL_SIM_HELD=3GiB -- --root m
	has "device 0: others hold 3.00 GiB of 8.00 GiB"
	has_not "of 8.00 GiB: pid"
	# The driver and a screen hold a little on most devices.
	simulated SPILL_SIM_VRAM=8GiB SPILL_SIM_HELD=1GiB SPILL_SIM_COMPUTES="4194305:2147483648" -- --root m
	has_not "others hold"
	simulated SPILL_SIM_VRAM=8GiB SPILL_SIM_HELD=3GiB SPILL_SIM_FAIL=nvmlInit_v2:1:999 -- --root m
	has_not "others hold"
	# The memory of an integrated device is the host's, and NVML tells nothing of it.
	simulated SPILL_SIM_VRAM=8GiB SPILL_SIM_HELD=3GiB SPILL_SIM_CAPS=integrated -- --root m
	has "device 0 is integrated"
	has_not "others hold"
}

@test "a device that can all: what it is, and a chunk that was moved" {
	machine
	simulated -- --root m
	ends_with 0
	has "fact [device] NVIDIA driver for CUDA 13.0, $BUILD/tests/sim/libcuda.so.1"
	has "fact [device] device 0: Simulated GPU, 8.00 GiB, 8.00 GiB free, discrete; concurrent managed access yes, pageable access no; can move, split, managed, host; a chunk was moved there and back"
	mkdir -p m/proc/driver/nvidia
	printf 'NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.1\nGCC version: 12\n' >m/proc/driver/nvidia/version
	simulated SPILL_SIM_DEVICES=2 -- --root m
	ends_with 0
	has "libcuda.so.1; NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.1"
	has_not "GCC version"
	has "fact [device] device 1: Simulated GPU"
	simulated SPILL_SIM_DEVICES=0 -- --root m
	ends_with 0
	has "NVIDIA's driver shows no device"
}

@test "what a device cannot do" {
	machine
	simulated SPILL_SIM_CAPS=novmm -- --root m
	ends_with 1
	has_line "warning [device] device 0: virtual memory management on the device is not offered"
	has "can managed, host"
	simulated SPILL_SIM_CAPS=nohostvmm -- --root m
	has_line "warning [device] device 0: virtual memory management on the host is not offered"
	simulated SPILL_SIM_CAPS=nomanaged -- --root m
	ends_with 0
	has "device 0 has no concurrent managed access"
	simulated SPILL_SIM_CAPS=integrated -- --root m
	has "device 0 is integrated: its memory is the host's"
	simulated SPILL_SIM_CAPS=coherent -- --root m
	has "device 0 is coherent: "
	has "pageable access by the host's page tables"
}

@test "what a device promises and does not do" {
	machine
	simulated SPILL_SIM_FAIL=cuMemCreate:1:800 -- --root m
	ends_with 1
	has_line "warning [device] device 0: a chunk on the device: create: CUDA_ERROR_NOT_PERMITTED"
	has_not "on the host: create"
	simulated SPILL_SIM_FAIL=cuMemSetAccess:2:800 -- --root m
	has_line "warning [device] device 0: a chunk on the host: set access: CUDA_ERROR_NOT_PERMITTED"
	simulated SPILL_SIM_FAIL=cuMemAllocManaged:1:800 -- --root m
	has_line "warning [device] device 0: managed memory: allocate: CUDA_ERROR_NOT_PERMITTED"
	simulated SPILL_SIM_FAIL=cuMemHostAlloc:1:800 -- --root m
	has_line "warning [device] device 0: pinned host memory: allocate: CUDA_ERROR_NOT_PERMITTED"
	simulated SPILL_SIM_FAIL=cuCtxRecordEvent:1+:800 -- --root m
	ends_with 1
	has_line "warning [device] device 0: a trial move of a chunk did not work"
	has_not "moved there and back"
	simulated SPILL_SIM_FAIL=cuDevicePrimaryCtxRetain:1+:800 -- --root m
	ends_with 1
	has_line "warning [device] device 0: a context: make a context: CUDA_ERROR_NOT_PERMITTED"
}

@test "a device that is full is no fault" {
	machine
	simulated SPILL_SIM_FAIL=cuMemCreate:1+:2 -- --root m
	ends_with 0
	has "fact [device] device 0: a chunk on the device: create: CUDA_ERROR_OUT_OF_MEMORY"
	has "fact [device] device 0: no memory for a trial move of a chunk"
}

@test "HIP: what XNACK makes of managed memory" {
	machine
	run env "LD_LIBRARY_PATH=$BUILD/tests/sim/hip" "$spill" doctor -v --quick --root m
	ends_with 0
	has "fact [device] AMD driver for HIP "
	has "device 0: XNACK is off, or the card has none"
	has "; can host"
	run env "LD_LIBRARY_PATH=$BUILD/tests/sim/hip" SPILL_SIM_CAPS=xnack "$spill" doctor -v --quick --root m
	has_not "XNACK is off"
	has "can managed, host"
	run env "LD_LIBRARY_PATH=$BUILD/tests/sim/hip/7" "$spill" doctor -v --quick --root m
	ends_with 0
	has "; can split, host"
	run env "LD_LIBRARY_PATH=$BUILD/tests/sim/hip/7" SPILL_SIM_FAIL=hipMemSetAccess:2+:999 "$spill" doctor -v --quick --root m
	has "device 0: a chunk on the host: set access: hipErrorUnknown"
}

@test "preloaded itself, it sees the driver as it is" {
	no_sanitizer
	machine
	simulated "LD_PRELOAD=$BUILD/libspill.so" SPILL_DEVICE_LIMIT=1GiB SPILL_MEMINFO_REPORT=limit -- --root m
	has "8.00 GiB, 8.00 GiB free"
	[ -z "$(find . -name '*.jsonl')" ]
}
