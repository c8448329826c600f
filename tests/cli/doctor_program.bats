load doctor.bash

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
