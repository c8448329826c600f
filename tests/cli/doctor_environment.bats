load doctor.bash

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
