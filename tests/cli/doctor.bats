load help.bash

# On the simulated GPU, with what the arguments before -- set. Speed is measured by the tests of it only.
simulated() {
	local set=()
	while [ "$1" != -- ]; do set+=("$1"); shift; done
	shift
	run env "LD_LIBRARY_PATH=$BUILD/tests/sim" "${set[@]}" "$spill" doctor -v --quick "$@"
}
measured() {
	local set=()
	while [ "$1" != -- ]; do set+=("$1"); shift; done
	shift
	run env "LD_LIBRARY_PATH=$BUILD/tests/sim" "${set[@]}" "$spill" doctor -v --root m "$@"
}
broken() { run env "LD_LIBRARY_PATH=$BUILD/tests/cli" "BROKEN_DRIVER=$1" "$spill" doctor -v --timeout "${2:-1}"; }

# Writes a model by hand.
gguf() { python3 "$BATS_TEST_DIRNAME/make_gguf.py" "$@"; }

# A machine's files, with 64 GiB available in no group, and what the tests do to them.
machine() {
	# What the shell, a container or a cluster has set must not decide a test.
	for name in $(env | sed -n -E 's/^((CUDA|NVIDIA|HIP|ROCR|NCCL|NVSHMEM|GGML|OMPI|PMI|MV2|SLURM|KUBERNETES)_[A-Z0-9_]*)=.*/\1/p') \
		WORLD_SIZE PMI_SIZE container XDG_STATE_HOME; do unset "$name"; done
	mkdir -p m/proc/self m/proc/pressure m/etc m/dev m/cg/a
	printf 'MemTotal: 99999999 kB\nMemAvailable: 67108864 kB\nSwapTotal: 1048576 kB\nSwapFree: 524288 kB\n' >m/proc/meminfo
	printf '0::/a\n' >m/proc/self/cgroup
	printf '30 20 0:1 / /cg rw - cgroup2 none rw\n' >m/proc/self/mountinfo
	: >m/cg/a/cgroup.procs
}

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

@test "without a driver: a fact, and nothing is wrong" {
	machine
	run "$spill" doctor -v --root m
	[[ $output == *"no GPU driver: neither"* || $output == *"driver shows no device"* ]]
	ends_with 0
	[[ ${lines[-1]} =~ ^0\ problems,\ 0\ warnings,\ [0-9]+\ facts:\ nothing\ stands\ in\ the\ way,\ but\ there\ is\ no\ GPU\ here ]]
	has_not "[program]"
}

@test "before it measures it says so, on a terminal only" {
	machine
	run "$spill" doctor -v --root m
	has_not "measures"
	run python3 -c 'import pty, sys; pty.spawn(sys.argv[1:])' "$spill" doctor -v --root m </dev/null
	[[ ${lines[0]} == "spill doctor: tries the drivers and measures the link and the host's memory, for some seconds (--quick"* ]]
	run python3 -c 'import pty, sys; pty.spawn(sys.argv[1:])' "$spill" doctor -v --root m --quick </dev/null
	has "facts"
	has_not "measures"
}

@test "a device's files and no driver library for them" {
	machine
	touch m/dev/nvidiactl
	run "$spill" doctor -v --root m
	ends_with 1
	has_line "problem [device] /dev/nvidiactl is there, and no libcuda.so.1"
	has "  do:  in a container: start it with the vendor's runtime"
	has "1 problem, 0 warnings, "
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

@test "how much memory may be locked" {
	run prlimit --memlock=1048576:1048576 "$spill" doctor -v --quick
	has "RLIMIT_MEMLOCK is 1.00 MiB"
	prlimit --memlock=unlimited:unlimited true || return 0
	run prlimit --memlock=unlimited:unlimited "$spill" doctor -v --quick
	has "RLIMIT_MEMLOCK is unlimited"
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

@test "the link's speed, and what decode would cost over it" {
	machine
	measured -- --json
	printf %s "$output" >out
	described doctor out
	run python3 - <<-'END'
		import json
		report = json.load(open("out"))
		(link,) = report["links"]
		assert list(link) == ["vendor", "device", "simulated", "to_device", "from_device", "host_memory", "decode"], link
		assert (link["vendor"], link["device"], link["simulated"]) == ("NVIDIA", 0, True), link
		assert link["to_device"] > 0 and link["from_device"] > 0, link
		assert [one["bytes"] >> 20 for one in link["decode"]] == [512, 1024, 2048, 4096, 8192]
		for one in link["decode"]:
		    # Both are rounded; slow machines have large figures.
		    assert abs(one["ms"] * link["to_device"] * 0.93e6 / one["bytes"] - 1) < 1e-2, one
		    if link["host_memory"]:  # not where little memory is available
		        assert abs(one["cpu_ms"] * link["host_memory"] * 1e6 / one["bytes"] - 1) < 1e-2, one
		    else:
		        assert one["cpu_ms"] is None, one
		verdict = ("" if not link["host_memory"] else "slower" if link["host_memory"] <= 0.93 * link["to_device"] else
		           "faster" if link["host_memory"] >= 2 * 0.93 * link["to_device"] else "similar")
		found = {one["check"]: one["what"] for one in report["findings"]}
		assert [name for name in found if name.startswith("offload")] == ["offload_" + verdict] * bool(verdict), found
		assert found["link"].startswith("device 0 (simulated): "), found
		assert "it has no link: these are copies within the host's memory" in found["link"], found
		assert "device 0 (simulated): with 512.00 MiB, 1.00 GiB, 2.00 GiB, 4.00 GiB, 8.00 GiB of weights" in found["decode"]
		# One cost for each size, as the links have them but rounded, in both sentences.
		def costs(text, before, after):
		    return [float(cost) for cost in text.partition(before)[2].partition(after)[0].split(", ")]
		said = [(costs(found["decode"], "a token of decode takes ", " ms longer"), "ms")]
		if verdict:
		    said.append((costs(found["offload_" + verdict], "the CPU needs ", " ms a token"), "cpu_ms"))
		for told, member in said:
		    assert len(told) == 5, found
		    for cost, one in zip(told, link["decode"]):
		        assert abs(cost - one[member]) <= 0.6, (cost, one)
	END
	ends_with 0
}

@test "decode of one size; HIP's link" {
	machine
	run env "LD_LIBRARY_PATH=$BUILD/tests/sim/hip" "$spill" doctor -v --root m --overflow 3.5GiB
	ends_with 0
	has "fact [device] device 0 (simulated): "
	has " GB/s from pinned host memory, "
	has "device 0 (simulated): with 3.50 GiB of weights in host memory a token of decode takes "
	grep -qE "to read the same weights the CPU needs [0-9.]+ ms a token" <<<"$output"
}

@test "a link that cannot be measured says why, and nothing is predicted" {
	machine
	measured SPILL_SIM_CAPS=integrated --
	has "fact [device] device 0: the link was not measured: its memory is the host's, there is no link"
	has_not "a token of decode"
	measured SPILL_SIM_VRAM=8MiB --
	has "the link was not measured: the device is full"
	measured SPILL_SIM_FAIL=cuMemcpy:1:719 --
	ends_with 0
	has "fact [device] device 0: the link was not measured: copy: CUDA_ERROR_LAUNCH_FAILED"
	has_not "a token of decode"
	simulated SPILL_SIM_FAIL=cuMemcpy:1:719 -- --root m
	has_not "the link"
	simulated -- --root m --json
	has '"links":[]'
}

@test "a slow link, and a driver that hangs while it copies" {
	machine
	broken slow 30
	ends_with 1
	has "warning [device] device 0: "
	has "do:  compare the link's width"
	has_not "(simulated)"
	has "a token of decode takes"
	broken hang-copy 3
	ends_with 1
	has_line "problem [device] NVIDIA's driver did not answer within 3 s while copying to and from a device"
	has "fact [device] device 0: Slow"
	has_not "a token of decode"
	has_not "the link was not measured"
}

@test "preloaded itself, it sees the driver as it is" {
	no_sanitizer
	machine
	simulated "LD_PRELOAD=$BUILD/libspill.so" SPILL_DEVICE_LIMIT=1GiB SPILL_MEMINFO_REPORT=limit -- --root m
	has "8.00 GiB, 8.00 GiB free"
	[ -z "$(find . -name '*.jsonl')" ]
}

@test "host memory: what may be spilled, and what bounds it" {
	machine
	run "$spill" doctor -v --root m
	ends_with 0
	has "fact [host] 64.00 GiB of host memory is available now, of which 32.00 GiB may be spilled"
	has "fact [host] 1.00 GiB of swap, 512.00 MiB free"
	has_not "control group"
	SPILL_HOST_LIMIT=3GiB run "$spill" doctor -v --root m
	has "of which 3.00 GiB may be spilled"
	echo 4294967296 >m/cg/a/memory.max
	echo 0 >m/cg/a/memory.current
	run "$spill" doctor -v --root m
	ends_with 0
	has "fact [host] the control group /cg/a leaves 4.00 GiB; the machine has 64.00 GiB available"
	has "4.00 GiB of host memory is available now, of which 2.00 GiB may be spilled"
	echo 3221225472 >m/cg/a/memory.current
	run "$spill" doctor -v --root m
	ends_with 1
	has_line "warning [host] 1.00 GiB of host memory is available now, of which nothing may be spilled"
	has_line "warning [host] the control group /cg/a leaves 1.00 GiB; the machine has 64.00 GiB available"
}

@test "host memory: pressure, no swap, a container" {
	machine
	run "$spill" doctor -v --root m
	has_not "in a container"
	has_not "lost to a lack of memory"
	printf 'MemAvailable: 67108864 kB\nSwapTotal: 0 kB\n' >m/proc/meminfo
	printf 'some avg10=90.00 avg60=1.00 avg300=1.00 total=1\nfull avg10=50.00 avg60=1.00 avg300=1.00 total=1\n' >m/proc/pressure/memory
	touch m/.dockerenv
	run "$spill" doctor -v --root m
	ends_with 1
	has_line "warning [host] more than a fifth of the last 10 seconds was lost to a lack of memory"
	has_line "fact [host] no swap"
	has_line "fact [host] in a container: /.dockerenv is there"
	rm m/.dockerenv
	container=lxc run "$spill" doctor -v --root m
	has_line "fact [host] in a container: the environment says container=lxc"
	KUBERNETES_SERVICE_HOST=10.0.0.1 run "$spill" doctor -v --root m
	has_line "fact [host] in a container: the environment has KUBERNETES_SERVICE_HOST"
	mkdir m/run
	touch m/run/.containerenv
	container=lxc run "$spill" doctor -v --root m
	has_line "fact [host] in a container: /run/.containerenv is there"
	rm m/proc/meminfo
	run "$spill" doctor -v --root m
	ends_with 1
	has_line "warning [host] the kernel does not report the available memory"
}

@test "host memory: what AMD's driver may pin" {
	machine
	mkdir -p m/sys/module/ttm/parameters
	page=$(getconf PAGESIZE)
	echo $((16 * 1073741824 / page)) >m/sys/module/ttm/parameters/pages_limit
	run "$spill" doctor -v --root m
	ends_with 0 # no AMD GPU
	touch m/dev/kfd
	run "$spill" doctor -v --root m
	has_line "warning [host] ttm.pages_limit lets AMD's driver pin 16.00 GiB, and 32.00 GiB may be spilled"
	echo $((32 * 1073741824 / page)) >m/sys/module/ttm/parameters/pages_limit
	run "$spill" doctor -v --root m
	has_not "ttm"
	SPILL_HOST_LIMIT=8GiB run "$spill" doctor -v --root m
	has_not "ttm"
}

@test "the unified-memory variable is on with any value" {
	machine
	for value in 1 0 ""; do
		GGML_CUDA_ENABLE_UNIFIED_MEMORY=$value run "$spill" doctor -v --root m
		ends_with 1
		has_line "warning [environment] GGML_CUDA_ENABLE_UNIFIED_MEMORY=$value"
		has "setting it to 0 leaves it on"
	done
}

@test "variables of the vendors and of ranks" {
	machine
	CUDA_VISIBLE_DEVICES=1,0 run "$spill" doctor -v --root m
	ends_with 0
	has "fact [environment] CUDA_VISIBLE_DEVICES=1,0"
	for value in "" -1 0,-1; do
		CUDA_VISIBLE_DEVICES=$value run "$spill" doctor -v --root m
		ends_with 1
		has_line "warning [environment] CUDA_VISIBLE_DEVICES=$value hides devices"
	done
	has_not MIG
	CUDA_VISIBLE_DEVICES=MIG-8a4ce2ea-5a4f-5a0d run "$spill" doctor -v --root m
	ends_with 0
	has "fact [environment] a part of a GPU (MIG) is chosen: CUDA_VISIBLE_DEVICES=MIG-8a4ce2ea-5a4f-5a0d"
	NVIDIA_VISIBLE_DEVICES=MIG-GPU-1/2/0 run "$spill" doctor -v --root m
	has "fact [environment] a part of a GPU (MIG) is chosen: NVIDIA_VISIBLE_DEVICES=MIG-GPU-1/2/0"
	ROCR_VISIBLE_DEVICES=-1 run "$spill" doctor -v --root m
	has "ROCR_VISIBLE_DEVICES=-1 hides devices"
	PMI_SIZE=1 WORLD_SIZE=8 NCCL_VERSION=2 run "$spill" doctor -v --root m
	ends_with 0
	PMI_SIZE=8 run "$spill" doctor -v --root m
	ends_with 1
	has_line "warning [environment] PMI_SIZE=8: one of several ranks shares device memory with the others"
	mkdir -p m/pipes
	export CUDA_MPS_PIPE_DIRECTORY=/pipes CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=0=1G
	run "$spill" doctor -v --root m
	ends_with 0
	has_not MPS
	touch m/pipes/control
	run "$spill" doctor -v --root m
	ends_with 1
	has_line "warning [environment] CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=0=1G"
	has_line "warning [environment] an MPS daemon's pipe is there: /pipes/control"
}

@test "other preloads" {
	no_sanitizer
	machine
	libm=$(find /lib/*-linux-gnu /lib64 /lib -name libm.so.6 2>/dev/null | head -1)
	LD_PRELOAD="$libm:$BUILD/libspill.so" run "$spill" doctor -v --root m
	ends_with 0
	has "fact [environment] LD_PRELOAD has $libm"
	has_not "has $BUILD/libspill.so"
	LD_PRELOAD=/nowhere/lib.so run "$spill" doctor -v --root m
	ends_with 1
	has_line "warning [environment] LD_PRELOAD names /nowhere/lib.so, which is not there or cannot be read"
	printf '/opt/other.so\n/opt/libspill.so\n' >m/etc/ld.so.preload
	run "$spill" doctor -v --root m
	ends_with 1
	has "fact [environment] /etc/ld.so.preload has /opt/other.so"
	has_line "warning [environment] /etc/ld.so.preload has /opt/libspill.so"
}

@test "another preload that has a dlsym of its own, before libspill" {
	no_sanitizer
	machine
	wraps=$BUILD/tests/preload/wrapper_dlsym.so
	said="$wraps before libspill.so, and it has a dlsym of its own"
	# spill run puts libspill.so behind.
	for list in "$wraps" "$wraps:$BUILD/libspill.so"; do
		LD_PRELOAD=$list run "$spill" doctor -v --root m -- /bin/true
		ends_with 1
		has_line "warning [environment] LD_PRELOAD has $said"
		has "1 warning"
	done
	# As the loader finds a bare name.
	LD_LIBRARY_PATH=${wraps%/*} LD_PRELOAD=wrapper_dlsym.so run "$spill" doctor -v --root m
	ends_with 1
	has_line "warning [environment] LD_PRELOAD has $said"
	# Behind libspill.so, or only a user of libc's.
	for list in "$BUILD/libspill.so:$wraps" "$BUILD/tests/preload/wrapper_phdr.so"; do
		LD_PRELOAD=$list run "$spill" doctor -v --root m
		ends_with 0
		has_not "dlsym of its own"
	done
	elf defines.so interp= defines=dlsym
	elf wants.so interp= wants=dlsym
	elf other.so interp= defines=dlsymm symbols=dlsym
	printf '%s\n' $PWD/{defines,wants,other}.so /opt/libspill.so >m/etc/ld.so.preload
	run "$spill" doctor -v --root m
	has_line "warning [environment] /etc/ld.so.preload has $PWD/defines.so before libspill.so, and it has a dlsym of its own"
	[ "$(grep -c "dlsym of its own" <<<"$output")" = 1 ]
	LD_PRELOAD=$BUILD/libspill.so run "$spill" doctor -v --root m
	has_not "dlsym of its own"
	printf '/opt/libspill.so\n%s\n' "$PWD/defines.so" >m/etc/ld.so.preload
	run "$spill" doctor -v --root m
	has_not "dlsym of its own"
}

@test "settings under which nothing spills" {
	machine
	for setting in SPILL_MODE=observe SPILL_OOM_CHAIN= SPILL_OOM_CHAIN=trim; do
		run env "$setting" "$spill" doctor -v --root m
		ends_with 1
		has "a request that does not fit ends in out of memory, as without libspill"
	done
	SPILL_MODE=observe run "$spill" doctor -v --root m
	has_line "warning [environment] libspill only observes: spill.mode = observe"
	SPILL_OOM_CHAIN=trim run "$spill" doctor -v --root m
	has_line "warning [environment] oom.chain names no place but the device"
	for setting in SPILL_MODE=spill SPILL_OOM_CHAIN=host SPILL_OOM_CHAIN=demote; do
		run env "$setting" "$spill" doctor -v --root m
		ends_with 0
		has_not "as without libspill"
	done
}

@test "the policy: its problem, who may write it, what is unknown, what is hidden" {
	machine
	printf '[device]\nlimt = 4GiB\n' >p.conf
	SPILL_POLICY=p.conf run "$spill" doctor -v --root m
	ends_with 1
	has_line "problem [environment] p.conf:2:1: unknown key 'limt' in [device]; the nearest is 'limit'"
	printf '[device]\nlimit = 4GiB\n' >p.conf
	SPILL_POLICY=p.conf run "$spill" doctor -v --root m
	ends_with 0
	has "the policy is of p.conf; mode spill"
	chmod o+w p.conf
	SPILL_POLICY=p.conf run "$spill" doctor -v --root m
	ends_with 1
	has "problem [environment] p.conf: others can write it"
	has "mode observe"
	SPILL_DEVICE_LIMITS=1 run "$spill" doctor -v --root m
	ends_with 1
	has_line "warning [environment] SPILL_DEVICE_LIMITS: unknown variable; the nearest is SPILL_DEVICE_LIMIT"
	chmod o-w p.conf
	printf '[rule a]\nplace = host\n' >>p.conf
	mkdir -p config/spill
	printf '[rule a]\nover = host\n' >config/spill/spill.conf
	SPILL_POLICY=p.conf run "$spill" doctor -v --root m
	ends_with 0
	has "fact [environment] $PWD/config/spill/spill.conf:1: the rule is hidden by the rule of the same name, p.conf:3"
	SPILL=0 run "$spill" doctor -v --root m
	ends_with 1
	has_line "warning [environment] libspill is off: SPILL in the environment"
}

@test "the files that the policy is of: those that were read, in their order" {
	machine
	run "$spill" doctor -v --root m
	has "the policy is of no file; mode spill"
	mkdir -p config/spill
	printf '[host]\nlimit = 4GiB\n' >config/spill/spill.conf
	printf '[spill]\nprofile = pytorch\n' >p.conf
	SPILL_POLICY=p.conf run "$spill" doctor -v --root m
	has "the policy is of p.conf, $PWD/config/spill/spill.conf, profile pytorch; mode spill"
}

@test "a variable that wins over a file, and one that wins over nothing" {
	machine
	printf '[device]\nlimit = 4GiB\n[app llama-*]\nhost.ahead = 1GiB\n' >p.conf
	export SPILL_POLICY=p.conf
	SPILL_DEVICE_LIMIT=6GiB SPILL_DEVICE_RESERVE=1GiB run "$spill" doctor -v --root m
	ends_with 1
	has_line "warning [environment] device.limit = 6GiB from the environment wins over 4GiB from p.conf:2"
	has_not device.reserve
	SPILL_HOST_AHEAD=2GiB run "$spill" doctor -v --root m
	ends_with 0
	elf llama-server
	SPILL_HOST_AHEAD=2GiB run "$spill" doctor -v --root m -- ./llama-server
	ends_with 1
	has "host.ahead = 2GiB from the environment wins over 1GiB from p.conf:4 [app llama-*]"
}

@test "the policy is that of an interpreter's script or module" {
	machine
	python=$(command python3 -c 'import sys; print(sys.executable)')
	printf '[app train.py]\nhost.ahead = 1GiB\n[app torch.run]\nhost.ahead = 3GiB\n' >p.conf
	printf '#!%s -u\n' "$python" >train.py
	mkdir shims
	printf '#!/usr/bin/env bash\nexec %s "$@"\n' "$python" >shims/python3 # as pyenv has them
	chmod +x train.py shims/python3
	ln -s train.py other
	export SPILL_POLICY=p.conf SPILL_HOST_AHEAD=2GiB
	for command in "$python -u train.py -x" ./train.py "shims/python3 train.py" ./nowhere/train.py; do
		run "$spill" doctor -v --root m -- $command
		has "host.ahead = 2GiB from the environment wins over 1GiB from p.conf:2 [app train.py]"
	done
	printf '#!%s\n' "$PWD/shims/python3" >train.py # as env finds it, and its own arguments are no script
	run "$spill" doctor -v --root m -- ./train.py other.py
	has "wins over 1GiB from p.conf:2 [app train.py]"
	printf '#!%s -u\n' "$python" >train.py
	run "$spill" doctor -v --root m -- "$python" -um torch.run train.py
	has "wins over 3GiB from p.conf:4 [app torch.run]"
	for command in ./other "$python -c train.py" "cat train.py"; do
		run "$spill" doctor -v --root m -- $command
		has_not "wins over"
	done
}

@test "the log's folder" {
	machine
	run "$spill" doctor -v --root m
	has "fact [environment] the log will be a file like $PWD/.local/state/spill/program-"
	SPILL_LOG=off run "$spill" doctor -v --root m
	ends_with 0
	has "no log is written"
	for mode in 644 755; do
		: >plain
		chmod $mode plain
		SPILL_LOG=$PWD/plain/more/y.jsonl run "$spill" doctor -v --root m
		ends_with 1
		has_line "warning [environment] the log would be a file like $PWD/plain/more/y.jsonl, and $PWD/plain cannot be written"
	done
	run env -u HOME "$spill" doctor -v --root m
	ends_with 1
	has_line "warning [environment] there will be no log: neither XDG_STATE_HOME nor HOME names a folder for it"
	# A file system that has no room for anybody; who is not root may not even try.
	SPILL_LOG=/proc/x/y.jsonl run "$spill" doctor -v --root m
	ends_with 1
	if [ "$(id -u)" = 0 ]; then
		has_line "warning [environment] the log will be a file like /proc/x/y.jsonl; 0 B are free there"
	else
		has_line "warning [environment] the log would be a file like /proc/x/y.jsonl, and /proc cannot be written"
	fi
}

@test "the folder of log.metrics" {
	machine
	mkdir textfile
	for pattern in off textfile textfile/%e.prom; do
		SPILL_LOG_METRICS=$pattern run "$spill" doctor -v --root m
		ends_with 0
		has_not "log.metrics"
	done
	SPILL_LOG_METRICS=none/%e.prom run "$spill" doctor -v --root m
	ends_with 1
	has_line "warning [environment] log.metrics = none/%e.prom: No such file or directory"
}

@test "a program that can be preloaded" {
	machine
	elf prog needed=libc.so.6
	run "$spill" doctor -v --root m -- ./prog
	ends_with 0
	has_line "fact [program] ./prog is a dynamically linked 64-bit program for glibc"
	has "prog and its 2 libraries name no CUDA or HIP library"
	mkdir -p before/prog
	PATH=$PWD/before:$PWD:$PATH run "$spill" doctor -v --root m -- prog -x --json
	ends_with 0
	has_line "fact [program] $PWD/prog is a dynamically linked 64-bit program for glibc"
}

@test "programs that are not there, closed, or none" {
	machine
	mkdir folder
	: >empty
	chmod +x empty
	elf closed
	chmod -x closed
	mkfifo pipe
	chmod +x pipe
	export PATH=$PWD:$PATH
	run "$spill" doctor -v --root m -- nowhere-at-all
	ends_with 1
	has_line "problem [program] nowhere-at-all is in no folder of PATH"
	run "$spill" doctor -v --root m -- ./nowhere
	has_line "problem [program] ./nowhere is not there"
	run "$spill" doctor -v --root m -- ./folder
	has_line "problem [program] ./folder: it is a folder"
	run "$spill" doctor -v --root m -- closed
	ends_with 1
	has_line "problem [program] $PWD/closed: it may not be executed"
	run "$spill" doctor -v --root m -- ./pipe
	has_line "problem [program] ./pipe: it is not a regular file"
	run "$spill" doctor -v --root m -- ./empty
	ends_with 1
	has_line "problem [program] ./empty is neither an ELF file nor a script"
	elf cut needed=libc.so.6 cut=100
	run "$spill" doctor -v --root m -- ./cut
	ends_with 1
	has "problem [program] ./cut: "
	has "the file contradicts itself"
}

@test "the table: each finding can be found, has a reason, and says what to do where something is to be done" {
	run python3 - "$BATS_TEST_DIRNAME/../../src/cli/doctor" <<-'END'
		import pathlib, re, sys
		folder = pathlib.Path(sys.argv[1])
		rows = re.findall(r'^FINDING\((\w+), (\w+), (\w+),\s*"((?:[^"\\]|\\.)*)",\s*"((?:[^"\\]|\\.)*)"\)$',
		                  (folder / "findings.def").read_text(), re.M)
		assert len(rows) == (folder / "findings.def").read_text().count("\nFINDING(") > 60, len(rows)
		code = "".join(file.read_text() for file in folder.glob("*.c"))
		for name, level, area, why, what in rows:
		    assert re.search(rf"\bDOCTOR_{name}\b", code), f"{name} is never found"
		    assert why and (what or level == "FACT"), name
		    assert not re.search(r"[.;,]$", why + what), f"{name}: the texts are joined by marks of their own"
	END
	ends_with 0
}

@test "programs that a preload does not reach" {
	machine
	elf static interp=
	elf small bits=32 machine=3
	elf other machine=243
	elf musl interp=/lib/ld-musl-x86_64.so.1
	elf lost interp=/nowhere/ld.so
	run "$spill" doctor -v --root m -- ./static
	ends_with 1
	has_line "problem [program] ./static is statically linked"
	run "$spill" doctor -v --root m -- ./small
	ends_with 1
	has_line "problem [program] ./small is a 32-bit program for i386"
	run "$spill" doctor -v --root m -- ./other
	ends_with 1
	has_line "problem [program] ./other is a 64-bit program for RISC-V"
	run "$spill" doctor -v --root m -- ./musl
	ends_with 1
	has_line "problem [program] ./musl is for musl (/lib/ld-musl-x86_64.so.1)"
	run "$spill" doctor -v --root m -- ./lost
	ends_with 1
	has_line "problem [program] ./lost names a loader that is not here: /nowhere/ld.so"
}

@test "programs with another's rights" {
	[ "$(id -u)" = 0 ] || skip "only root can give a file away"
	machine
	elf prog
	chmod u+s prog
	run "$spill" doctor -v --root m -- ./prog
	ends_with 0
	chown 65534 prog
	chmod u+s prog
	findmnt -no OPTIONS -T . 2>/dev/null | grep -q nosuid && skip "this file system ignores the bit"
	run "$spill" doctor -v --root m -- ./prog
	ends_with 1
	has_line "problem [program] ./prog is set-user-id: it runs as user 65534"
	elf prog
	chown 0:65534 prog
	chmod 2755 prog
	run "$spill" doctor -v --root m -- ./prog
	has_line "problem [program] ./prog is set-group-id: it runs as group 65534"
	chmod 0755 prog
	chown 0:0 prog
	if command -v setcap >/dev/null && setcap cap_net_raw+ep prog 2>/dev/null; then
		run "$spill" doctor -v --root m -- ./prog
		has_line "problem [program] ./prog has file capabilities"
	fi
}

@test "a script: its interpreter is what counts" {
	machine
	elf runner interp=
	printf '#!%s -x\n' "$PWD/runner" >one
	printf '#!/usr/bin/env -S A=1 runner -u\n' >two
	printf '#!./three\n' >three
	chmod +x one two three
	export PATH=$PWD:$PATH
	run "$spill" doctor -v --root m -- ./one
	ends_with 1
	has_line "fact [program] ./one is a script of $PWD/runner"
	has_line "problem [program] $PWD/runner is statically linked"
	run "$spill" doctor -v --root m -- ./two
	has_line "problem [program] $PWD/runner is statically linked"
	run "$spill" doctor -v --root m -- ./three
	ends_with 1
	has "too many scripts"
}

@test "a CUDA runtime inside the program" {
	machine
	elf prog "text=cudaErrorMemoryAllocation libcuda.so.1 cuGetProcAddress_v2"
	elf half "text=cudaErrorMemoryAllocation libcuda.so.1"
	simulated -- --root m -- ./prog
	ends_with 0
	has "fact [program] ./prog contains a CUDA runtime"
	run "$spill" doctor -v --root m -- ./half
	has_not "contains a CUDA runtime"
	real=$BUILD/tests/preload/prog_runtime_static_real
	if [ -x "$real" ]; then
		run "$spill" doctor -v --root m -- "$real"
		has "contains a CUDA runtime"
	fi
}

@test "libraries that it needs: found as the loader would, or missing" {
	machine
	mkdir -p app/lib env
	elf app/lib/libone.so.1 needed=libtwo.so.1
	elf env/libtwo.so.1 needed=libamdhip64.so.5
	elf app/lib/libamdhip64.so.5 bits=32
	elf app/prog needed=libone.so.1,libone.so.1 'runpath=/nowhere:$ORIGIN/lib'
	run "$spill" doctor -v --root m -- app/prog
	ends_with 1
	has_line "problem [program] libone.so.1 needs libtwo.so.1, which is not found"
	has_not "needs libone.so.1"
	LD_LIBRARY_PATH=$PWD/env run "$spill" doctor -v --root m -- app/prog
	has "fact [program] libtwo.so.1 needs libamdhip64.so.5"
	has_not "name no CUDA or HIP"
	elf app/old needed=libone.so.1 'rpath=${ORIGIN}/lib:'"$PWD/env"
	run "$spill" doctor -v --root m -- app/old
	has "fact [program] libtwo.so.1 needs libamdhip64.so.5"
	has_not "libtwo.so.1, which is not found"
}

@test "libraries that only the loader's cache knows" {
	machine
	mkdir hidden
	elf hidden/libcuda.so.1
	elf prog needed=libcuda.so.1,libgone.so.1
	cache() { python3 - "$@" <<-'END'
		import struct, sys
		count, cut, *paths = sys.argv[1:]
		strings, entries, at = b"", b"", 48 + 24 * len(paths)
		for path in paths:
		    name = path.split("/")[-1].encode() + b"\0"
		    entries += struct.pack("<iIIIQ", 0x303, at + len(strings), at + len(strings) + len(name), 0, 0)
		    strings += name + path.encode() + b"\0"
		data = b"glibc-ld.so.cache1.1" + struct.pack("<II", int(count), len(strings)) + bytes(20) + entries + strings
		open("m/etc/ld.so.cache", "wb").write(data[:len(data) - int(cut)])
		END
	}
	run "$spill" doctor -v --root m -- ./prog
	has_line "problem [program] prog needs libcuda.so.1, which is not found"
	mkdir hidden/32
	elf hidden/32/libcuda.so.1 bits=32
	cache 3 0 "$PWD/other/libgon.so.1" "$PWD/hidden/32/libcuda.so.1" "$PWD/hidden/libcuda.so.1"
	run "$spill" doctor -v --root m -- ./prog
	has_line "problem [program] prog needs libgone.so.1, which is not found"
	has_not "libcuda.so.1, which is not found"
	# A machine has a path for each of its architectures, not any number of them.
	many=("$PWD/hidden/32/libcuda.so.1"{,,,,,,,,,,,,,,})
	cache 16 0 "${many[@]}" "$PWD/hidden/libcuda.so.1"
	run "$spill" doctor -v --root m -- ./prog
	has_not "libcuda.so.1, which is not found"
	cache 17 0 "${many[@]}" "$PWD/hidden/32/libcuda.so.1" "$PWD/hidden/libcuda.so.1"
	run "$spill" doctor -v --root m -- ./prog
	has "libcuda.so.1, which is not found"
	# One whose last path has no end, and one that counts more than it has.
	cache 1 1 "$PWD/hidden/libcuda.so.1"
	run "$spill" doctor -v --root m -- ./prog
	has "libcuda.so.1, which is not found"
	cache 4000000000 0 "$PWD/hidden/libcuda.so.1"
	run "$spill" doctor -v --root m -- ./prog
	ends_with 1
	has "libcuda.so.1, which is not found"
}

@test "libraries that stand against movable memory, or hand memory on" {
	machine
	mkdir lib m/dev/infiniband
	for name in libnccl.so.2 libnvoptix.so.1 libibverbs.so.1 libcufile.so.0; do elf lib/$name; done
	elf prog needed=libnccl.so.2,libnvoptix.so.1,libibverbs.so.1,libcufile.so.0 runpath="$PWD/lib"
	touch m/dev/infiniband/uverbs m/dev/nvidia-fs
	run "$spill" doctor -v --root m -- ./prog
	ends_with 1
	has "fact [program] prog needs libnccl.so.2"
	has_line "warning [program] prog needs libnvoptix.so.1: libnvoptix is loaded: OptiX launches through tables of the driver's own"
	has "warning [program] prog needs libcufile.so.0: "
	rm m/dev/nvidia-fs
	run "$spill" doctor -v --root m -- ./prog
	has "fact [program] prog needs libcufile.so.0: "
	has "warning [program] prog needs libibverbs.so.1: "
}

@test "a guess at libraries that a preload does not reach" {
	machine
	elf asks symbols=malloc,dlmopen
	elf near symbols=my_dlmopen,dlmopen2
	elf text "text=os.RTLD_DEEPBIND"
	run "$spill" doctor -v --root m -- ./asks
	ends_with 0
	has "fact [program] asks names RTLD_DEEPBIND or dlmopen"
	run "$spill" doctor -v --root m -- ./text
	has "text names RTLD_DEEPBIND or dlmopen"
	run "$spill" doctor -v --root m -- ./near
	has_not RTLD_DEEPBIND
}

@test "worst first, and the last line sums up" {
	machine
	elf static interp=
	touch m/.dockerenv
	GGML_CUDA_ENABLE_UNIFIED_MEMORY=0 run "$spill" doctor -v --root m -- ./static
	ends_with 1
	[ "$(grep -oE '^(problem|warning|fact) ' <<<"$output" | uniq | tr -d '\n')" = "problem warning fact " ]
	[[ ${lines[-1]} =~ ^1\ problem,\ 1\ warning,\ [0-9]+\ facts:\ something\ does\ not\ work$ ]]
}

@test "facts only with -v; the last line is the verdict" {
	machine
	run env "LD_LIBRARY_PATH=$BUILD/tests/sim" SPILL_SIM_DEVICES=2 "$spill" doctor --quick --root m
	ends_with 0
	has "advice [device] 2 devices are visible"
	has "  why: each device has its own limit"
	has_not "fact ["
	[[ ${lines[-1]} =~ ^0\ problems,\ 0\ warnings,\ 1\ piece\ of\ advice,\ [0-9]+\ facts\ \(-v\ shows\ them\):\ nothing\ stands\ in\ the\ way$ ]]
	GGML_CUDA_ENABLE_UNIFIED_MEMORY=0 run "$spill" doctor --root m
	ends_with 1
	has_not "fact ["
	[[ ${lines[-1]} =~ ^0\ problems,\ 1\ warning,\ [0-9]+\ facts\ \(-v\ shows\ them\):\ it\ works,\ but\ read\ the\ warnings$ ]]
	simulated -- --root m
	[[ ${lines[-1]} =~ facts:\ nothing\ stands\ in\ the\ way$ ]]
	has_not "devices are visible"
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

@test "another preload that hooks GPU memory, by what it defines" {
	no_sanitizer
	machine
	elf libvgpu.so interp= defines=cuMemAlloc_v2
	elf hip.so interp= defines=hipMalloc
	elf wants.so interp= wants=cuMemAlloc_v2
	elf innocent-libvgpu.so interp= defines=malloc
	printf '%s\n' "$PWD/libvgpu.so" "$PWD/wants.so" "$PWD/innocent-libvgpu.so" >m/etc/ld.so.preload
	run "$spill" doctor --root m
	ends_with 1
	has_line "warning [environment] /etc/ld.so.preload has $PWD/libvgpu.so, which defines cuMemAlloc_v2"
	[ "$(grep -c "which defines" <<<"$output")" = 1 ]
	# On both sides of libspill.so.
	: >m/etc/ld.so.preload
	for list in "$PWD/hip.so:$BUILD/libspill.so" "$BUILD/libspill.so:$PWD/hip.so"; do
		LD_PRELOAD=$list run "$spill" doctor -v --root m
		ends_with 1
		has_line "warning [environment] LD_PRELOAD has $PWD/hip.so, which defines hipMalloc"
	done
	# libspill itself is no other, and a wrapper of dlsym hooks no memory.
	LD_PRELOAD=$BUILD/libspill.so:$BUILD/tests/preload/wrapper_dlsym.so run "$spill" doctor -v --root m
	ends_with 0
	has_not "which defines"
}

@test "WSL 2, and a driver that keeps freed pages" {
	machine
	mkdir -p m/proc/sys/kernel m/proc/driver/nvidia
	echo 6.1.0-18-amd64 >m/proc/sys/kernel/osrelease
	printf 'ResmanDebugLevel: 4294967295\nEnableSystemMemoryPools: 0\nImexChannelCount: 2048\n' >m/proc/driver/nvidia/params
	run "$spill" doctor --root m
	ends_with 0
	has_not WSL
	has_not EnableSystemMemoryPools
	printf 'ResmanDebugLevel: 4294967295\nEnableSystemMemoryPools: 529\nImexChannelCount: 2048\n' >m/proc/driver/nvidia/params
	run "$spill" doctor --root m
	ends_with 0
	has "advice [host] NVIDIA's module has EnableSystemMemoryPools: 529"
	echo 4.4.0-19041-Microsoft >m/proc/sys/kernel/osrelease # WSL 1 has no GPU
	run "$spill" doctor --root m
	ends_with 0
	echo 5.15.153.1-microsoft-standard-WSL2 >m/proc/sys/kernel/osrelease
	run "$spill" doctor --root m
	ends_with 1
	has_line "warning [host] in WSL 2: the kernel is 5.15.153.1-microsoft-standard-WSL2"
	touch m/dev/dxg
	run "$spill" doctor --root m
	has_line "problem [device] /dev/dxg is there, and no libcuda.so.1"
}

@test "gVisor, and a confidential virtual machine with a GPU" {
	machine
	echo 'Linux version 6.1.0-18-amd64 (debian-kernel@lists.debian.org)' >m/proc/version
	touch m/dev/tdx_guest m/dev/sev-guest # without a GPU nothing is to be said
	run "$spill" doctor --root m
	ends_with 0
	has_not gVisor
	has_not confidential
	echo 'Linux version 4.19.0-gvisor #1 SMP Sun Jan 10 15:06:54 PST 2016' >m/proc/version
	run "$spill" doctor --root m
	ends_with 1
	has_line "warning [host] in gVisor: /proc/version is Linux version 4.19.0-gvisor #1 SMP Sun Jan 10 15:06:54 PST 2016"
	touch m/dev/nvidiactl
	run "$spill" doctor --root m
	has_line "warning [host] a confidential virtual machine with a GPU: /dev/tdx_guest is there"
	has_line "warning [host] a confidential virtual machine with a GPU: /dev/sev-guest is there"
}

@test "a model for llama.cpp: what it needs, and whether -ngl would be faster" {
	machine
	elf llama-server
	# 32 layers of 4 MiB, 16 MiB besides, and a cache of 4 KiB a token and layer: 32 MiB for 256 tokens.
	gguf model.gguf layers=32 layer_mib=4 output_mib=16
	simulated SPILL_SIM_VRAM=8GiB -- --root m -- ./llama-server -m model.gguf -c 256
	ends_with 0
	has "fact [device] model.gguf: 32 layers; with a cache of 256 tokens it needs 432.00 MiB, and 8.00 GiB of 1 device is free"
	simulated SPILL_SIM_VRAM=384MiB -- --root m -- ./llama-server --ctx-size 256 --model model.gguf
	ends_with 0
	has "model.gguf: 32 layers; with a cache of 256 tokens it needs 432.00 MiB, and 384.00 MiB of 1 device is free"
	has "the rest spills to host memory"
	has_not "advice" # nothing was measured
	# In two parts, on two devices, with the context of -c missing; an output that shares the embedding's weights.
	gguf part-00001-of-00002.gguf layers=32 layer_mib=4 first=0 last=16
	gguf part-00002-of-00002.gguf layers=32 layer_mib=4 output_mib=16 first=16 last=32 keys=
	simulated SPILL_SIM_VRAM=384MiB SPILL_SIM_DEVICES=2 -- --root m -- ./llama-server -m part-00001-of-00002.gguf
	has "part-00001-of-00002.gguf: 32 layers; with a cache of 4096 tokens it needs 912.00 MiB, and 768.00 MiB of 2 devices is free"
	gguf tied.gguf layers=32 layer_mib=4 embedding_mib=8
	simulated -- --root m -- ./llama-server tied.gguf -c 256
	has "tied.gguf: 32 layers; with a cache of 256 tokens it needs 424.00 MiB"
	# Drafts are no models of the program; nor is there one without a word for it.
	simulated -- --root m -- ./llama-server -md tied.gguf
	has_not "layers"
	# The advice is by the measured rates, as docs/commands.md says.
	measured SPILL_SIM_VRAM=384MiB -- --json -- ./llama-server -c 256 -m model.gguf
	printf %s "$output" >out
	run python3 - <<-'END'
		import json
		report = json.load(open("out"))
		link, = report["links"]
		found = {one["check"]: one for one in report["findings"]}
		mib = 1 << 20
		room, layer = 128, 5  # 384 less 256; 4 and the cache
		fit = room // layer
		over = (32 * layer + 16 - room) * mib / (0.93e6 * link["to_device"])
		cpu = ((32 - fit) * layer + 16) * mib / (0.75e6 * link["host_memory"]) if link["host_memory"] else over + 1
		if abs(cpu / over - 1) > 0.02:  # the rates are rounded
		    assert ("offload_layers" in found) == (cpu < over), (cpu, over, found)
		if "offload_layers" in found:
		    assert f"-ngl {fit} would probably be faster (simulated)" in found["offload_layers"]["what"], found
		    assert found["offload_layers"]["level"] == "advice"
	END
	ends_with 0
}

@test "files that are no models" {
	machine
	elf llama-server
	gguf whole.gguf layers=2 layer_mib=1
	size=$(stat -c %s whole.gguf)
	for cut in 0 3 8 23 24 40 100 300; do
		head -c $cut whole.gguf >cut.gguf
		simulated -- --root m -- ./llama-server -m cut.gguf
		ends_with 0
		has "fact [device] cut.gguf: it is "
	done
	echo "no model at all, but long enough" >text.gguf
	simulated -- --root m -- ./llama-server -m text.gguf
	has "fact [device] text.gguf: it is no GGUF file"
	simulated -- --root m -- ./llama-server -m nowhere.gguf
	has "fact [device] nowhere.gguf: No such file or directory"
	for lie in tensors=99999999999 keycount=99999999999 arraylen=18446744073709551615 layers=18446744073709551615 dims=4294967295 version=1 heads=99999999999999; do
		gguf lie.gguf layers=2 layer_mib=1 $lie
		simulated -- --root m -- ./llama-server -m lie.gguf
		ends_with 0
		has "fact [device] lie.gguf: it is damaged, or of another kind"
	done
	# A hole can have any number of strings.
	gguf holes.gguf layers=2 layer_mib=1 empty=1000000
	simulated -- --root m -- ./llama-server -m holes.gguf
	has "fact [device] holes.gguf: 2 layers"
	gguf holes.gguf layers=2 layer_mib=1 empty=17000000
	simulated -- --root m -- ./llama-server -m holes.gguf
	has "fact [device] holes.gguf: it is damaged, or of another kind"
}

@test "as JSON: every finding with what, why and what to do" {
	machine
	elf 'pr"og' needed=libnowhere.so.1
	run "$spill" doctor -v --root m --json -- './pr"og'
	ends_with 1
	printf %s "$output" >out
	run python3 -c '
import json
report = json.load(open("out"))
print(report["program"], report["problems"], report["warnings"], report["facts"] + report["advice"] == len(report["findings"]) - 1)
for one in report["findings"]:
    assert list(one) == ["check", "level", "area", "what", "why", "do"], one
    assert one["why"] and (one["do"] or one["level"] == "fact"), one
    if one["level"] == "problem": print(one["check"], one["area"], one["what"])'
	has_line './pr"og 1 0 True'
	has_line 'library_missing program pr"og needs libnowhere.so.1, which is not found'
	"$spill" doctor -v --root m --json | python3 -c 'import json, sys; assert json.load(sys.stdin)["program"] is None'
}

@test "names of files cannot steer the terminal" {
	machine
	run "$spill" doctor -v --root m -- $'./a\x1b[31m'
	has "./a?[31m is not there"
}

@test "wrong usage" {
	run "$spill" doctor -v --timeout
	ends_with 2
	has "option '--timeout' needs a value"
	for value in 0 -1 x 601 1.5 ""; do
		run "$spill" doctor -v --timeout "$value"
		ends_with 2
		has "--timeout: '$value' is not a number of seconds"
	done
	run "$spill" doctor -v --overflow 0
	ends_with 2
	has "--overflow: the size must not be 0"
	run "$spill" doctor -v --overflow 4GB
	ends_with 2
	run "$spill" doctor -v --quick --overflow 4GiB
	ends_with 2
	has "--overflow needs the speed that --quick does not measure"
	run "$spill" doctor -v -- ""
	ends_with 2
}
