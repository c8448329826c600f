load help.bash

@test "the program gets the library and nothing else" {
	run "$spill" run -- env
	ends_with 0
	has_line "LD_PRELOAD=$BUILD/libspill.so"
	has_not "SPILL_"
}

@test "options become variables, paths whole" {
	printf '[device]\nlimit = 4GiB\n' >p.conf
	SPILL_LOG_PATH=/other run "$spill" run -p p.conf -l %e.jsonl --limit 6GiB env
	ends_with 0
	has_line "SPILL_POLICY=$PWD/p.conf"
	has_line "SPILL_LOG=$PWD/%e.jsonl"
	has_line "SPILL_DEVICE_LIMIT=6GiB"
	has_not "SPILL_LOG_PATH"
}

@test "a log that is off, absolute, or under a folder with a %" {
	run "$spill" run -l off env
	has_line "SPILL_LOG=off"
	run "$spill" run --log=/x/%p env
	has_line "SPILL_LOG=/x/%p"
	mkdir 50%off && cd 50%off
	run "$spill" run -l here env
	has_line "SPILL_LOG=${PWD/\%/%%}/here"
}

@test "a preload that is there stays, ours is added once" {
	other=$(find /lib/x86_64-linux-gnu /lib -name libm.so.6 2>/dev/null | head -1)
	LD_PRELOAD=$other run "$spill" run env
	has_line "LD_PRELOAD=$other:$BUILD/libspill.so"
	run "$spill" run "$spill" run env
	has_line "LD_PRELOAD=$BUILD/libspill.so"
	LD_PRELOAD=" :: " run "$spill" run env
	has_line "LD_PRELOAD=$BUILD/libspill.so"
}

@test "ours is there already, however it is written; another libspill.so stays the only one" {
	no_sanitizer
	mkdir other
	ln -s "$BUILD/libspill.so" other/libspill.so
	LD_PRELOAD=$PWD/other/libspill.so run "$spill" run env
	ends_with 0
	has_line "LD_PRELOAD=$PWD/other/libspill.so"
	has_not "spill run:"
	LD_LIBRARY_PATH=$BUILD LD_PRELOAD=libspill.so run "$spill" run env
	has_line "LD_PRELOAD=libspill.so"
	rm other/libspill.so
	cp "$BUILD/libspill.so" other/
	LD_PRELOAD=$PWD/other/libspill.so run "$spill" run env
	ends_with 0
	has_line "LD_PRELOAD=$PWD/other/libspill.so"
	has_line "spill run: another libspill.so is preloaded already and is used: $PWD/other/libspill.so"
	LD_PRELOAD=$PWD/nowhere/libspill.so run "$spill" run env
	has_line "LD_PRELOAD=$PWD/nowhere/libspill.so:$BUILD/libspill.so"
}

@test "the process becomes the program: pid and exit status" {
	run bash -c 'echo $$; exec "$0" run -- bash -c "echo \$\$; exit 42"' "$spill"
	ends_with 42
	[ "${lines[0]}" = "${lines[1]}" ]
}

@test "nothing of ours is left: descriptors, ignored signals, the mask" {
	printf '[device]\nlimit = 4GiB\n' >p.conf
	state() { trap "" USR1; "$@" bash -c 'ls /proc/$$/fd; grep ^Sig[IBC] /proc/$$/status'; }
	state env >without
	state "$spill" run -p p.conf -l off -- >with
	run diff without with
	ends_with 0
	[ "$(wc -l <with)" -ge 6 ]
}

@test "a signal ends it as it would end the program" {
	run bash -c '"$0" run -- bash -c "kill -TERM \$\$"; echo "status $?"' "$spill"
	has "status 143"
}

@test "arguments after the program are the program's" {
	run "$spill" run echo -p --limit -- x
	ends_with 0
	has_line "-p --limit -- x"
}

@test "a limit of a few bytes is told, and holds" {
	run "$spill" run --limit 6 -- sh -c 'echo "limit=$SPILL_DEVICE_LIMIT"; exit 3'
	ends_with 3
	[ "$output" = "spill run: --limit is 6 bytes; did you mean 6GiB or 6MiB?
limit=6" ]
	for limit in 0 64MiB 67108864 75% none; do
		run "$spill" run --limit "$limit" -- echo "limit=$limit"
		[ "$output" = "limit=$limit" ]
	done
}

@test "a limit below 64 MiB is told on stderr, and holds" {
	for limit in 6B:6\ B 4KiB:4.00\ KiB 1048576:1.00\ MiB 6MiB:6.00\ MiB 63.9MiB:63.90\ MiB; do
		run "$spill" run --limit "${limit%%:*}" -- sh -c 'echo "limit=$SPILL_DEVICE_LIMIT"; exit 3'
		ends_with 3
		[ "$output" = "spill run: --limit ${limit%%:*}: the program may hold only ${limit#*:} of device memory
limit=${limit%%:*}" ]
	done
}

# The answer, typed on a terminal; the rest of what is typed is the program's.
@test "on a terminal a limit below 64 MiB is a question" {
	cat >asked.py <<-'END'
		import os, pty, select, subprocess, sys
		answer, *command = sys.argv[1:]
		# This side keeps the terminal open, and no session ends with the program: either would hang it up, and what it still
		# holds can be lost then.
		fd, terminal = pty.openpty()
		program = subprocess.Popen(command, stdin=terminal, stdout=terminal, stderr=terminal)
		shown, answered, ended = b"", False, False
		while True:
		    ready = select.select([fd], [], [], 0.01)[0]
		    if ready:
		        shown += os.read(fd, 4096)
		    elif ended:
		        break
		    ended = program.poll() is not None
		    if not answered and b"[y/N]" in shown:
		        os.write(fd, answer.encode())
		        answered = True
		sys.stdout.buffer.write(shown.replace(b"\r", b""))
		sys.exit(program.returncode)
	END
	for answer in $'y\nthe rest\n' $'Yes\nthe rest\n'; do
		run python3 asked.py "$answer" "$spill" run --limit 6MiB -- sh -c 'read -r line; echo "started, $line"; exit 3'
		ends_with 3
		has "spill run: --limit 6MiB: the program may hold only 6.00 MiB of device memory; start the program? [y/N]"
		has "started, the rest"
	done
	for answer in $'\n' $'n\n' $' y\n' $'\4'; do
		run python3 asked.py "$answer" "$spill" run --limit 6MiB -- echo started
		ends_with 2
		has "not started; give --limit another value"
		has_not "started
"
	done
	# With a hint about the unit, too. Without a question nothing waits.
	run python3 asked.py $'y\n' "$spill" run --limit 6 -- echo started
	has "did you mean 6GiB or 6MiB?"
	has "only 6 B of device memory; start the program? [y/N]"
	run python3 asked.py "" "$spill" run --limit 64MiB -- echo started
	ends_with 0
	[ "$output" = started ]
}

@test "a bad policy, log or limit is refused before the program starts" {
	printf '[device]\nlimt = 4GiB\n' >bad.conf
	run "$spill" run -p bad.conf -- echo started
	ends_with 2
	has "bad.conf:2:1: unknown key 'limt'"
	has_not started
	run "$spill" run -p missing.conf -- echo started
	ends_with 2
	has "missing.conf: no such file"
	run "$spill" run --limit 4GB -- echo started
	ends_with 2
	has "--limit: bad size '4GB'"
	run "$spill" run -l /x/%q -- echo started
	ends_with 2
	has_not started
}

@test "a profile, by its name" {
	run "$spill" run --profile moe-experts env
	ends_with 0
	has_line "SPILL_PROFILE=moe-experts"
	run "$spill" run --profile moe-expert -- echo started
	ends_with 2
	has "--profile: "
	has "the nearest is 'moe-experts'"
	has_not started
	run "$spill" run --profile "" -- echo started
	ends_with 2
}

# A machine with AMD's driver alone, where nothing is set for PyTorch. The unit test of framework.c has that case.
torch_can_be_asked() { [ ! -e /dev/kfd ] || [ -e /dev/nvidiactl ] || skip "an AMD GPU, and none of NVIDIA's"; }
TORCH=backend:cudaMallocAsync
torch_line="spill run: PYTORCH_ALLOC_CONF and PYTORCH_CUDA_ALLOC_CONF are set to $TORCH"
has_torch() {
	ends_with 0
	has_line "PYTORCH_ALLOC_CONF=$TORCH"
	has_line "PYTORCH_CUDA_ALLOC_CONF=$TORCH"
	[ "$(grep -c "^PYTORCH\|^spill run:" <<<"$output")" -eq $((2 + $1)) ] || { echo "$output"; return 1; }
}

@test "--torch: PyTorch's two variables, and one line" {
	torch_can_be_asked
	run "$spill" run --torch env
	has_torch 1
	has_line "$torch_line"
	has_line "SPILL_RUN_FRAMEWORK=pytorch"
	SPILL_RUN_FRAMEWORK=none run "$spill" run --torch --torch env
	has_torch 1
}

@test "--torch is quiet if its values are there already" {
	torch_can_be_asked
	run "$spill" run --torch -- "$spill" run --torch env
	has_torch 1
}

@test "without --torch PyTorch's variables are nobody's business" {
	PYTORCH_CUDA_ALLOC_CONF=a run "$spill" run env
	has_line PYTORCH_CUDA_ALLOC_CONF=a
	has_not "spill run:"
	has_not PYTORCH_ALLOC_CONF
}

@test "--torch leaves all of PyTorch's variables if one is set, even to nothing" {
	torch_can_be_asked
	for name in PYTORCH_ALLOC_CONF PYTORCH_CUDA_ALLOC_CONF PYTORCH_HIP_ALLOC_CONF; do
		for value in expandable_segments:True $TORCH ""; do
			run env "$name=$value" "$spill" run --torch env
			ends_with 0
			has_line "$name=$value"
			has_line "spill run: nothing is set for PyTorch, which keeps $name=$value"
			[ "$(grep -c "^PYTORCH\|^spill run:" <<<"$output")" -eq 2 ]
		done
	done
	PYTORCH_ALLOC_CONF=a PYTORCH_CUDA_ALLOC_CONF=b run "$spill" run --torch env
	has_line PYTORCH_ALLOC_CONF=a
	has_line PYTORCH_CUDA_ALLOC_CONF=b
	has_line "spill run: nothing is set for PyTorch, which keeps PYTORCH_ALLOC_CONF=a, PYTORCH_CUDA_ALLOC_CONF=b"
}

@test "the profile pytorch does as --torch, wherever it is named" {
	torch_can_be_asked
	run "$spill" run --profile pytorch env
	has_torch 1
	has_line "$torch_line"
	SPILL_PROFILE=pytorch run "$spill" run env
	has_torch 1
	printf '[spill]\nprofile = pytorch\n' >p.conf
	run "$spill" run -p p.conf env
	has_torch 1
	SPILL_POLICY=p.conf run "$spill" run env
	has_torch 1
	SPILL_POLICY=p.conf SPILL_RUN_FRAMEWORK=none run "$spill" run env
	has_not PYTORCH
	mkdir -p config/spill
	mv p.conf config/spill/spill.conf
	run "$spill" run env
	has_torch 1
	run "$spill" run --profile none env
	has_not PYTORCH
	run "$spill" run --profile gh200-managed --torch env
	has_torch 1
	has_line "SPILL_PROFILE=gh200-managed"
}

@test "a framework for one program: the script that an interpreter runs" {
	torch_can_be_asked
	printf '[app train.py]\nrun.framework = pytorch\n' >p.conf
	printf 'import os\nprint(os.environ.get("PYTORCH_ALLOC_CONF"))\n' >train.py
	cp train.py other.py
	run "$spill" run -p p.conf -- python3 -u train.py
	has_line "$torch_line"
	has_line "$TORCH"
	run "$spill" run -p p.conf -- python3 other.py
	[ "$output" = None ]
}

@test "nothing is set for a framework where libspill changes nothing" {
	for mode in observe off; do
		SPILL_MODE=$mode run "$spill" run --torch env
		ends_with 0
		has_line "spill run: nothing is set for PyTorch: spill.mode is $mode"
		has_not PYTORCH_
	done
	SPILL=0 run "$spill" run --torch env
	has_line "spill run: SPILL=0 is set, so libspill does nothing; unset SPILL"
	has_not PYTORCH_
	printf 'bad\n' >bad.conf
	SPILL_POLICY=bad.conf run "$spill" run --torch env
	ends_with 0
	has_line "spill run: nothing is set for PyTorch: spill.mode is observe"
	has_not PYTORCH_
}

@test "each word of run.framework is acted upon" {
	torch_can_be_asked
	words=$(SPILL_RUN_FRAMEWORK=? "$spill" policy 2>&1 | sed -n "s/^SPILL_RUN_FRAMEWORK: bad value '?'; it must be one of none, //p")
	[[ $words == pytorch* ]]
	for word in ${words//,/}; do
		SPILL_RUN_FRAMEWORK=$word run "$spill" run true
		[[ $output == "spill run: "*" set to "* ]]
	done
}

@test "an environment in which libspill does nothing" {
	SPILL=0 run "$spill" run echo started
	ends_with 0
	has_line started
	has_line "spill run: SPILL=0 is set, so libspill does nothing; unset SPILL"
	SPILL=1 run "$spill" run echo started
	has_not "spill run:"
}

@test "a program that no preload reaches starts, and it is told" {
	no_sanitizer
	elf static interp=
	printf '#!%s\n' "$PWD/static" >script
	chmod +x script
	run "$spill" run ./static
	has_line "spill run: ./static is statically linked, so libspill is not loaded; see: spill doctor -- ./static"
	PATH=$PWD:$PATH run "$spill" run script
	has "spill run: $PWD/static is statically linked"
	[ "$(id -u)" = 0 ] && ! findmnt -no OPTIONS -T . 2>/dev/null | grep -q nosuid || return 0
	cp /bin/true mine
	chown 65534 mine
	chmod u+s mine
	run "$spill" run ./mine
	ends_with 0
	has "spill run: ./mine is set-user-id: it runs as user 65534, so libspill is not loaded"
}

@test "a program whose loader is missing does not start, and it is told" {
	no_sanitizer
	elf lost interp=/nowhere/ld.so
	run "$spill" run ./lost
	ends_with 127
	has "spill run: ./lost names a loader that is not here: /nowhere/ld.so"
	has "./lost: No such file or directory (for the interpreter or loader that the file names)"
}

@test "wrong usage" {
	run "$spill" run
	ends_with 2
	has "which program?"
	run "$spill" run --
	ends_with 2
	has "which program?"
	run "$spill" run --polcy=x echo started
	ends_with 2
	has "unknown option '--polcy=x'; the nearest is '--policy'"
	run "$spill" run -x echo started
	ends_with 2
	has "unknown option '-x'"
	run "$spill" run --limit 1GiB --limit 2GiB echo started
	ends_with 2
	has "--limit is given twice: '1GiB' and '2GiB'"
	has_not started
	run "$spill" run -p
	ends_with 2
	has "option '-p' needs a value"
}

@test "a program that is not there, or is none" {
	run "$spill" run -- ./nothing
	ends_with 127
	has "./nothing: No such file"
	: >plain
	run "$spill" run -- ./plain
	ends_with 126
	run "$spill" run -- .
	ends_with 126
	run "$spill" run -- ""
	ends_with 127
	run "$spill" run -- -p
	ends_with 127
	has "spill run: -p: No such file"
}

@test "installed: the library in ../lib; nowhere; in a folder with a blank" {
	mkdir -p usr/bin usr/lib "a b"
	cp "$spill" usr/bin/ && cp "$spill" "a b/"
	run usr/bin/spill run env
	ends_with 1
	has "libspill.so is neither beside this command nor in ../lib"
	cp "$BUILD/libspill.so" usr/lib/ && cp "$BUILD/libspill.so" "a b/"
	run usr/bin/spill run env
	ends_with 0
	has_line "LD_PRELOAD=$PWD/usr/lib/libspill.so"
	run "a b/spill" run env
	ends_with 1
	has "blanks and colons"
	has "move or link"
}

# Where the loader of the command looks for $LIB: usr/bin/spill with its library there.
installed() {
	lib=$("$(readelf -lW "$spill" | sed -n 's/.*program interpreter: \(.*\)]$/\1/p')" --list-diagnostics | sed -n 's/^dl_dst_lib="\(.*\)"$/\1/p')
	mkdir -p usr/bin "usr/$lib"
	cp "$spill" usr/bin/ && cp "$BUILD/libspill.so" "usr/$lib/"
}

@test "installed where the loader finds it by \$LIB: so it is named, once" {
	no_sanitizer
	installed
	run usr/bin/spill run env
	ends_with 0
	has_line "LD_PRELOAD=$PWD/usr/\$LIB/libspill.so"
	run usr/bin/spill run usr/bin/spill run grep -o "$PWD/usr/.*/libspill.so" /proc/self/maps
	has_line "$PWD/usr/$lib/libspill.so"
	run usr/bin/spill run usr/bin/spill run env
	has_line "LD_PRELOAD=$PWD/usr/\$LIB/libspill.so"
	has_not "spill run:"
	mv usr 'a b'
	run 'a b/bin/spill' run env
	ends_with 1
	has "blanks and colons"
}

@test "\$LIB is not taken when it is another file, or the library lies elsewhere" {
	no_sanitizer
	installed
	# ../lib64 is looked at in its turn; what $LIB finds is damaged.
	mkdir -p usr/lib64
	mv "usr/$lib/libspill.so" usr/lib64/
	echo "no library" >"usr/$lib/libspill.so"
	run usr/bin/spill run env
	ends_with 0
	has_line "LD_PRELOAD=$PWD/usr/lib64/libspill.so"
}

@test "a 32-bit program: its own library by \$LIB, and no line; without, the loader's" {
	no_sanitizer
	[ -x "$BUILD/tests/cli/program_32" ] && [ -f "$BUILD/shim/i386/libspill.so" ] || skip "the compiler makes no 32-bit programs"
	"$BUILD/tests/cli/program_32" >/dev/null 2>&1 || [ $? -eq 32 ] || skip "no 32-bit programs run here (libc6-i386)"
	installed
	run usr/bin/spill run "$BUILD/tests/cli/program_32"
	ends_with 32
	has "cannot be preloaded"
	lib_32=$(/lib/ld-linux.so.2 --list-diagnostics | sed -n 's/^dl_dst_lib="\(.*\)"$/\1/p')
	mkdir -p "usr/$lib_32"
	cp "$BUILD/shim/i386/libspill.so" "usr/$lib_32/"
	run usr/bin/spill run bash -c '"$0"; echo "status $?"' "$BUILD/tests/cli/program_32"
	[ "$output" = "32 bits
status 32" ]
	run usr/bin/spill run env LD_DEBUG=files "$BUILD/tests/cli/program_32"
	has "$PWD/usr/$lib_32/libspill.so"
	run "$spill" run "$BUILD/tests/cli/program_32"
	ends_with 32
	has "wrong ELF class: ELFCLASS64"
}
