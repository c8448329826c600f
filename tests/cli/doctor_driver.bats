load doctor.bash

@test "a device's files and no driver library for them" {
	machine
	touch m/dev/nvidiactl
	run "$spill" doctor -v --root m
	ends_with 1
	has_line "problem [device] /dev/nvidiactl is there, and no libcuda.so.1"
	has "  do:  in a container: start it with the vendor's runtime"
	has "1 problem, 0 warnings, "
}

@test "a driver that hangs, crashes, exits, refuses: the command goes on" {
	broken hang
	ends_with 1
	has_line "problem [device] NVIDIA's driver did not answer within 1 s while starting"
	broken crash
	ends_with 1
	has_line "problem [device] NVIDIA's driver ended its process (Segmentation fault) while starting"
	broken exit
	ends_with 1
	has_line "problem [device] NVIDIA's driver ended its process (exit) while starting"
	broken refuse
	ends_with 1
	has_line "problem [device] NVIDIA's driver does not start: CUDA_ERROR_SYSTEM_DRIVER_MISMATCH (803)"
	has "RLIMIT_MEMLOCK is"
}

@test "a driver that fails while memory is made: what it told of its devices counts" {
	machine
	local how
	for how in "hang:did not answer within 1 s" "crash:ended its process (Segmentation fault)"; do
		broken "${how%%:*}-touch"
		ends_with 1
		has_line "problem [device] NVIDIA's driver ${how#*:} while making memory on a device"
		has "fact [device] device 0: Slow, 1.00 GiB"
		has_not "device 1"
		has_not "the link"
	done
	# Before that, not all of it is known.
	broken hang-ask
	ends_with 1
	has_line "problem [device] NVIDIA's driver did not answer within 1 s while telling its devices"
	has_not "device 0"
}

@test "a driver that is old, lacks functions, or is no library" {
	broken old
	ends_with 1
	has_line "warning [device] the driver is of CUDA 11.8"
	has "NVIDIA's driver shows no device"
	mkdir other
	cp "$BUILD/libspill.so" other/libcuda.so.1
	echo "no library" >plain
	cp "$(find /lib/*-linux-gnu /lib64 /lib -name libm.so.6 2>/dev/null | head -1)" other/libcuda.so.1
	LD_LIBRARY_PATH=$PWD/other run "$spill" doctor -v
	ends_with 1
	[[ $(grep lacks <<<"$output") == "problem [device] libcuda.so.1 lacks functions that libspill needs: cuCtxGetCurrent, cuCtxGetDevice, "*" and "* ]]
	cp plain other/libcuda.so.1
	LD_LIBRARY_PATH=$PWD/other run "$spill" doctor -v
	ends_with 1
	has "problem [device] NVIDIA's driver cannot be loaded: $PWD/other/libcuda.so.1: "
}

@test "a program that needs a GPU, where there is none" {
	machine
	mkdir lib
	elf lib/libcudart.so.12
	elf lib/libamdhip64.so.6
	elf cuda needed=libcudart.so.12 runpath="$PWD/lib"
	elf hip needed=libamdhip64.so.6 runpath="$PWD/lib"
	elf static "text=cudaErrorMemoryAllocation libcuda.so.1 cuGetProcAddress_v2"
	elf plain needed=libc.so.6
	run "$spill" doctor --root m -- ./cuda
	ends_with 1
	has_line "problem [program] cuda needs libcudart.so.12, and no NVIDIA driver shows a GPU here"
	[[ ${lines[-1]} == "1 problem, "*": something does not work" ]]
	run "$spill" doctor --root m -- ./hip
	has_line "problem [program] hip needs libamdhip64.so.6, and no AMD driver shows a GPU here"
	run "$spill" doctor --root m -- ./static
	has_line "problem [program] ./static contains a CUDA runtime, and no NVIDIA driver shows a GPU here"
	run "$spill" doctor --root m -- ./plain
	ends_with 0
	# A driver that shows no device, and the other vendor's.
	simulated SPILL_SIM_DEVICES=0 -- --root m -- ./cuda
	has_line "problem [program] cuda needs libcudart.so.12, and no NVIDIA driver shows a GPU here"
	simulated -- --root m -- ./cuda
	ends_with 0
	has_not "shows a GPU here"
	# A driver that fails is the problem itself.
	run env "LD_LIBRARY_PATH=$BUILD/tests/cli" BROKEN_DRIVER=refuse "$spill" doctor --root m -- ./cuda
	has "NVIDIA's driver does not start"
	has_not "shows a GPU here"
	simulated -- --root m -- ./hip
	ends_with 1
	has_line "problem [program] hip needs libamdhip64.so.6, and no AMD driver shows a GPU here"
}

@test "a CUDA runtime that is newer than the driver" {
	machine
	mkdir lib
	for major in 11.0 12 13 14; do elf lib/libcudart.so.$major; done
	elf new needed=libcudart.so.12,libcudart.so.14,libcudart.so.11.0 runpath="$PWD/lib"
	elf same needed=libcudart.so.13 runpath="$PWD/lib"
	simulated -- --root m -- ./new
	ends_with 1
	has_line "problem [program] new needs libcudart.so.14, and the driver is of CUDA 13.0"
	simulated -- --root m -- ./same
	ends_with 0
	has_not "the driver is of"
	run env "LD_LIBRARY_PATH=$BUILD/tests/cli" BROKEN_DRIVER=old "$spill" doctor --root m -- ./same
	has_line "problem [program] same needs libcudart.so.13, and the driver is of CUDA 11.8"
}

@test "functions that a driver lacks" {
	machine
	# The one of ROCm 5 has no HIP memory pools in some builds; the simulator's lists are the vendors'.
	simulated -- --root m
	has_not "driver lacks"
	broken old
	has "fact [device] NVIDIA's driver lacks "
}
