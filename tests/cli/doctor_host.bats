load doctor.bash

@test "how much memory may be locked" {
	run prlimit --memlock=1048576:1048576 "$spill" doctor -v --quick
	has "RLIMIT_MEMLOCK is 1.00 MiB"
	prlimit --memlock=unlimited:unlimited true || return 0
	run prlimit --memlock=unlimited:unlimited "$spill" doctor -v --quick
	has "RLIMIT_MEMLOCK is unlimited"
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
