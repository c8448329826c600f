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
}

@test "the process becomes the program: pid and exit status" {
	run bash -c 'echo $$; exec "$0" run -- bash -c "echo \$\$; exit 42"' "$spill"
	ends_with 42
	[ "${lines[0]}" = "${lines[1]}" ]
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

@test "wrong usage" {
	run "$spill" run
	ends_with 2
	has "which program?"
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
