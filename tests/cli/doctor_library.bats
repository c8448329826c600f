load doctor.bash

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
