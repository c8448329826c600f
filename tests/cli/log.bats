load help.bash
load logs.bash

@test "a run, line by line" {
	run "$spill" log "$data/run.jsonl"
	ends_with 0
	has_line "llama-server (pid 4711) on node7, 2026-11-21T03:50:51.123456Z, libspill 0.1.0, cuda driver 13.0"
	has_line "  device 0: NVIDIA H200, 140.40 GiB"
	has_line "  policy: device.limit = 4GiB (environment)"
	has_not "spill.mode"
	has "    0.001234  alloc #1      1.00 GiB  device  device 0  cudaMalloc  libggml-cuda.so+0x1a2b  fits  41 us"
	has "   12.345678  alloc #2      7.04 GiB  split (5.00 GiB device, 2.04 GiB host)"
	has "oom; tried device: CUDA_ERROR_OUT_OF_MEMORY  401.2 ms"
	has_line "   13.000000  OUT OF MEMORY  512 B asked  device 0  cudaMalloc  prog+0x1  refused by host.limit; free 1.00 MiB of 8.00 GiB; live 6.00 GiB device, 2.04 GiB host; tried device: CUDA_ERROR_OUT_OF_MEMORY, host: host.limit; largest: 7.04 GiB #2 libggml-cuda.so+0x1a2b"
	has "   14.000000  free  #2      7.04 GiB  split  device 0  cuMemFree_v2  prog+0x2  free  1.5 ms"
	has "end (exit): 1 of 2 allocations placed off the card, in all 2.04 GiB host; 1 refused as out of memory; peak 6.00 GiB device, 2.04 GiB host; still held 1.00 GiB device"
	has_not "no exit line"
}

@test "a part of it: by kind, caller and time; the program is named anyway" {
	run "$spill" log --kind oom --kind note "$data/run.jsonl"
	ends_with 0
	[ "${#lines[@]}" = 5 ]
	has "llama-server (pid 4711) on node7"
	has "   13.000000  OUT OF MEMORY"
	has "   13.100000  note"
	run "$spill" log --caller libggml-cuda.so "$data/run.jsonl"
	[ "${#lines[@]}" = 5 ]
	has "alloc #1"
	has "alloc #2"
	[ "$("$spill" log --json --caller '*.so+0x1a2b' "$data/run.jsonl" | jq -c '[.[].kind]')" = '["alloc","alloc"]' ]
	[ "$("$spill" log --json --caller libggml "$data/run.jsonl")" = "[]" ]
	sed 's/libggml-cuda\.so/libc++.so/g' "$data/run.jsonl" > "$BATS_TEST_TMPDIR/plus.jsonl"
	[ "$("$spill" log --json --caller 'libc++.so' "$BATS_TEST_TMPDIR/plus.jsonl" | jq -c '[.[].kind]')" = \
		"$("$spill" log --json --caller libggml-cuda.so "$data/run.jsonl" | jq -c '[.[].kind]')" ]
	[ "$("$spill" log --json --since 13.1s "$data/run.jsonl" | jq -c '[.[].kind]')" = '["note","free","exit"]' ]
	[ "$("$spill" log --json --since 13s --kind oom "$data/run.jsonl" | jq -c '[.[].t]')" = '[13]' ]
	run "$spill" log --kind oon "$data/run.jsonl"
	ends_with 2
	has "no kind 'oon'; the nearest is 'oom'"
	run "$spill" log --since soon "$data/run.jsonl"
	ends_with 2
	has "bad --since 'soon'"
}

@test "what moved, and for whom" {
	run "$spill" log "$data/moves.jsonl"
	ends_with 0
	has "    1.000000  alloc #1      7.04 GiB  movable (7.04 GiB device)  device 0  cudaMalloc"
	has_line "    2.000000  move  #1      2.00 GiB to host memory, now 5.04 GiB device, 2.00 GiB host  device 0  cuMemCreate  libggml-cuda.so+0x99  oom  425.0 ms"
	has_line "    3.000000  move  #1      2.00 GiB back to the device, now 7.04 GiB device  device 0  free  76.0 ms"
	has "; moved 2.00 GiB to host memory in 1 move, 2.00 GiB back in 1; still held"
	run "$spill" log "$data/run.jsonl"
	has_not moved
}

@test "what log.max left out, in sums" {
	printf '%s\n' '{"v":1,"kind":"drop","t":3.5,"alloc":{"count":12,"device_bytes":3221225472,"host_bytes":0,"managed_bytes":0},"demote":{"count":2,"device_bytes":0,"host_bytes":134217728,"managed_bytes":0},"peak":{"device_bytes":7,"host_bytes":0,"managed_bytes":0}}' >drop.jsonl
	run "$spill" log drop.jsonl
	ends_with 0
	has_line "    3.500000  drop  12 alloc (3.00 GiB device), 2 demote (128.00 MiB host) not written: log.max"
}

# A run at log.level $1 with two rules, and its other lines
run_with() {
	head -1 "$data/run.jsonl" | sed 's/"policy":\[/&{"name":"log.level","value":"'$1'","source":"default"},{"name":"rule big","value":"size = 1GiB..","source":"a.conf:1"},{"name":"rule never","value":"caller = x","source":"a.conf:4"},/'
	shift
	for line in "$@"; do printf '%s\n' "$line"; done
}
big() { sed -n 's/"rule":"default"/"rule":"big","would":"'$2'"/; '$1'p' "$data/run.jsonl"; }

@test "which rank of a job it was" {
	sed '1s/"program"/"rank":{"SLURM_PROCID":"3","OMPI_COMM_WORLD_RANK":"5"},"program"/' "$data/run.jsonl" >rank.jsonl
	run "$spill" log rank.jsonl
	has_line "llama-server (pid 4711) on node7, 2026-11-21T03:50:51.123456Z, libspill 0.1.0, cuda driver 13.0, OMPI_COMM_WORLD_RANK=5, SLURM_PROCID=3"
}

@test "an out of memory names its rule, and what would be there of mode = observe" {
	run_with all "$(big 2 refuse)" "$(big 5 host)" >rules.jsonl
	run "$spill" log rules.jsonl
	ends_with 0
	has "fits, rule big; would be refused  41 us"
	has "refused by host.limit, rule big; would be host; free 1.00 MiB"
	run "$spill" log "$data/run.jsonl"
	has "refused by host.limit; free"
}

@test "the requests of each rule are counted in the whole log, or not at all" {
	run_with all "$(big 2 refuse)" "$(big 5 host)" >rules.jsonl
	run "$spill" log rules.jsonl
	has "  rule big: "
	run "$spill" log --kind alloc rules.jsonl
	has_not "  rule big: "
}

# A line of sums.
sum='{"v":1,"kind":"sum","t":2.5,"order":7,"dev":0,"api":"cudaMallocAsync","caller":"libc10_cuda.so+0x1","rule":"big","alloc":{"count":12,"device_bytes":3145728,"host_bytes":0,"managed_bytes":0},"free":{"count":4,"device_bytes":1048576,"host_bytes":0,"managed_bytes":0},"live_bytes":2097152,"peak_bytes":2621440,"largest":{"seq":9,"bytes":1048576}}'

@test "sums are printed with their call site, and count for their rule" {
	run_with each "$(big 2 host)" "$sum" >sums.jsonl
	run "$spill" log sums.jsonl
	has_line "    2.500000  sum   12 alloc (3.00 MiB), 4 free (1.00 MiB), held 2.00 MiB, at most 2.50 MiB  device 0  cudaMallocAsync  libc10_cuda.so+0x1, rule big"
	has_line "  rule big: 13 requests"
}

@test "a part of it by caller: of what moved, and of sums" {
	[ "$("$spill" log --json --caller libggml-cuda.so+0x99 "$data/moves.jsonl" | jq -c '[.[].what]')" = '["demote"]' ]
	run_with each "$sum" "${sum//libc10_cuda/other}" >sums.jsonl
	[ "$("$spill" log --json --caller libc10_cuda.so sums.jsonl | jq -c '[.[].caller]')" = '["libc10_cuda.so+0x1"]' ]
	run "$spill" log --kind qqqqqqqq "$data/run.jsonl"
	ends_with 2
	has "no kind 'qqqqqqqq'; the kinds are start alloc"
	has_not "nearest"
}

@test "a part of it that is empty says so" {
	run "$spill" log --caller nobody.so "$data/run.jsonl"
	ends_with 0
	has_line "no record is of that kind, caller and time"
	[ "${#lines[@]}" = 4 ]
	run "$spill" log --kind start "$data/run.jsonl"
	has_not "no record is"
	run "$spill" log --since 90h --json "$data/run.jsonl"
	[ "$output" = "[]" ]
	: >empty.jsonl
	run "$spill" log --kind oom empty.jsonl
	ends_with 1
	has_not "no record is"
}

@test "a kind that is half another word has no nearest one" {
	run "$spill" log --kind demote "$data/run.jsonl"
	ends_with 2
	has "no kind 'demote'; the kinds are start alloc"
}

@test "how many requests each rule had, so that one that never matched is seen" {
	{ run_with all "$(big 2 host)" "$(big 5 host)"; run_with all "$(big 2 host)"; } >rules.jsonl
	run "$spill" log rules.jsonl
	ends_with 0
	[ "$(grep -n '^  rule ' <<<"$output")" = "8:  rule big: 2 requests
9:  rule never: no request
16:  rule big: 1 request
17:  rule never: no request" ]
	run "$spill" log --json rules.jsonl
	has_not "no request"
}

@test "requests that have no lines are not said to be none" {
	run_with spills >rules.jsonl
	run "$spill" log rules.jsonl
	has_not "request"
	has "policy: rule never"
	run_with all '{"v":1,"kind":"drop","t":3.5,"peak":{"device_bytes":7,"host_bytes":0,"managed_bytes":0}}' >rules.jsonl
	run "$spill" log rules.jsonl
	ends_with 0
	has_not "request"
	run_with all '{"v":1,"kind":"note","t":3.5,"tid":1,"code":"log-lost","text":"x"}' >rules.jsonl
	run "$spill" log rules.jsonl
	ends_with 0
	has_not "request"
}

@test "kinds and fields of later versions are skipped" {
	run "$spill" log "$data/run.jsonl"
	has_not later
	[ "$(grep -c '^ *[0-9]*\.[0-9]* ' <<<"$output")" -eq 6 ]
}

@test "records of a later version are counted, not guessed at" {
	{ head -2 "$data/run.jsonl"; echo '{"v":2,"kind":"alloc","t":1.5,"seq":"x"}'; tail -1 "$data/run.jsonl"; } >later.jsonl
	run "$spill" log later.jsonl
	ends_with 0
	has_line "not shown: 1 record of a later version of spill"
	[ "$(grep -c alloc <<<"$output")" -eq 2 ]
	"$spill" log --json later.jsonl | python3 -c 'import json, sys; assert json.load(sys.stdin)[2]["v"] == 2'
}

@test "text of a log cannot steer the terminal" {
	run "$spill" log "$data/run.jsonl"
	has "note  evil: a ?[31mred?[0m note"
	has_not $'\x1b'
	# U+009B is as good as ESC [; what is next to it among the characters is text.
	printf '%s\n' '{"v":1,"kind":"note","t":1,"tid":1,"code":"evil","text":"a\u009b31mred\u0080\u009f\u00a0\u0109 note"}' >c1.jsonl
	run "$spill" log c1.jsonl
	has "note  evil: a?31mred??"$'\xc2\xa0\xc4\x89'" note"
}

@test "a log whose program was killed" {
	run "$spill" log "$data/killed.jsonl"
	ends_with 0
	has "killed.jsonl:4: the last line is cut"
	has "alloc #2"
	has_line "no exit line: the program still runs, was killed, has crashed, or ended by exec or a system call"
	killed_here $$ "$(cat /proc/sys/kernel/random/boot_id)" >p.jsonl
	exec 9>>p.jsonl
	run "$spill" log p.jsonl
	has_line "no exit line: the program still runs"
	run "$spill" log $$
	has_line "no exit line: the program still runs"
	exec 9>&-
}

@test "a run that begins within the line that a killed one left" {
	{ head -2 "$data/run.jsonl"; printf '{"v":1,"kind":"alloc","t":1.0'; cat "$data/moves.jsonl"; } >reused.jsonl
	run "$spill" log reused.jsonl
	ends_with 0
	has_line "spill log: reused.jsonl:3: the line is cut, and another run begins in it"
	[ "$(grep -c '^llama-server (pid' <<<"$output")" -eq 2 ]
	has "alloc #1      7.04 GiB"
}

@test "a broken line in the middle is a finding, and the rest is shown" {
	{ head -2 "$data/run.jsonl"; echo '{"v":1,"kind":'; tail -1 "$data/run.jsonl"; } >broken.jsonl
	run "$spill" log broken.jsonl
	ends_with 1
	has "broken.jsonl:3: not a record: it ends within a value (byte 15)"
	has "end (exit)"
}

@test "as one JSON array, numbers as they are" {
	"$spill" log --json "$data/run.jsonl" >out
	run python3 -c 'import json; a = json.load(open("out")); print(len(a), a[2]["bytes"])'
	has_line "8 7555858432"
	run "$spill" log --json "$data/killed.jsonl"
	ends_with 0
	"$spill" log --json "$data/killed.jsonl" 2>/dev/null | python3 -c 'import json, sys; assert len(json.load(sys.stdin)) == 3'
}

@test "an empty log" {
	: >empty.jsonl
	run "$spill" log empty.jsonl
	ends_with 1
	[ "$output" = "spill log: empty.jsonl: no records" ]
	run "$spill" log --json empty.jsonl
	ends_with 1
	[ "$("$spill" log --json empty.jsonl 2>error)" = "[]" ]
	[ "$(cat error)" = "spill log: empty.jsonl: no records" ]
	# As report and replay say it.
	for command in report "replay --profile none"; do
		# shellcheck disable=SC2086
		run "$spill" $command empty.jsonl
		ends_with 1
		has_line "spill ${command%% *}: empty.jsonl: no records"
	done
	printf '{"v":1,"kind":"sta' >cut.jsonl
	run "$spill" log cut.jsonl
	ends_with 1
	has_line "spill log: cut.jsonl: no records"
	# In a folder the others are told.
	mkdir logs
	cp "$data/run.jsonl" empty.jsonl logs
	run "$spill" log logs
	ends_with 1
	has "llama-server"
	has_line "spill log: logs/empty.jsonl: no records"
}

@test "a folder: all logs by name, each under its own" {
	mkdir logs
	cp "$data/killed.jsonl" logs/b-10.jsonl
	cp "$data/run.jsonl" logs/b-9.jsonl
	echo '{"v":1,"kind":"start"}' >logs/other.json
	run "$spill" log logs
	ends_with 0
	[ "$(grep -E '^==> |no exit line' <<<"$output")" = "==> logs/b-9.jsonl <==
==> logs/b-10.jsonl <==
no exit line: the program still runs, was killed, has crashed, or ended by exec or a system call" ]
	"$spill" log --json logs 2>/dev/null | python3 -c 'import json, sys; assert len(json.load(sys.stdin)) == 11'
	rm logs/b-10.jsonl
	run "$spill" log logs
	has_not "==>"
	rm logs/b-9.jsonl
	run "$spill" log logs
	ends_with 1
	has "spill log: logs: no *.jsonl in it"
}

# Whoever is left when a test has failed.
teardown() { kill -9 $writer $follower 2>/dev/null || :; }
# Until it is so: an event, not a time. What never comes is a failure, and not a test that never ends.
until_true() {
	local end=$((SECONDS + 120))
	until "$@"; do
		[ "$SECONDS" -lt "$end" ] || { echo "never: $*"; cat out; return 1; }
		read -rt 0.05 <> <(:) || :
	done
}
until_line() { until_true grep -q -- "$2" "$1"; }
is_empty() { [ ! -s "$1" ]; }
ended() { ! kill -0 "$1" 2>/dev/null; }
# A process that writes logs as libspill does. It does what it is told on its standard input; its pid is $writer.
begin_writer() {
	mkfifo todo
	bash -c 'while read -r line; do eval "$line"; done' <todo &
	writer=$!
	exec 7>todo
}
tell() { printf '%s\n' "$1" >&7; }
start_line() {
	head -1 "$data/run.jsonl" | sed "s/\"pid\":[0-9]*/\"pid\":$writer/; s/\"host\":\"[^\"]*\"/\"host\":\"$(uname -n)\"/; s/\"boot\":\"[^\"]*\"/\"boot\":\"$(cat /proc/sys/kernel/random/boot_id)\"/"
}
note() { printf '{"v":1,"kind":"note","t":%s,"tid":1,"code":"x","text":"%s"}' "$1" "$2"; }
exit_line() { grep '"kind":"exit"' "$data/run.jsonl"; }
# Follows what is named with the options before it; $follower, its output in `out`.
begin_following() {
	"$spill" log -f "$@" >out 2>&1 7>&- &
	follower=$!
}

@test "-f: what is there and what comes, until the process is gone; a line only when it is whole" {
	begin_writer
	start_line >p.jsonl
	tell 'exec 8>>p.jsonl'
	begin_following p.jsonl
	until_line out "^llama-server"
	tell "printf %s '$(note 1.5 first | cut -c1-40)' >&8"
	tell "printf '%s\n' '$(note 1.5 first | cut -c41-)' >&8; printf '%s\n' '$(note 1.6 second)' >&8"
	until_line out second
	[ "$(grep -c first out)" = 1 ]
	tell "printf '%s\n' '$(exit_line)' >&8"
	until_line out "end (exit)"
	# The process lives, and has its log: it may execute another program.
	kill -0 $follower
	tell "printf '%s\n' '$(note 3.5 behind)' >&8"
	until_line out behind
	exec 7>&-
	until_true ended $follower
	run cat out
	has_not "not a record"
	has_line "no exit line: the program was killed, has crashed, or ended by exec or a system call"
}

@test "-f ends when the run has, though the number lives on in another" {
	begin_writer
	{ start_line; exit_line; } >p.jsonl
	begin_following p.jsonl
	until_true ended $follower
	kill -0 $writer
	run cat out
	has "end (exit)"
}

@test "-f of a killed program: the line that it did not finish is cut" {
	begin_writer
	{ start_line; note 1.5 first | cut -c1-20 | tr -d '\n'; } >p.jsonl
	begin_following p.jsonl
	until_line out "^llama-server"
	kill -9 $writer
	until_true ended $follower
	run cat out
	has "p.jsonl:2: the last line is cut"
	has_line "no exit line: the program was killed, has crashed, or ended by exec or a system call"
}

@test "-f of what ran on another machine, or before this one was started, ends at its end" {
	run "$spill" log -f "$data/run.jsonl"
	ends_with 0
	has "end (exit)"
	[ "$output" = "$("$spill" log "$data/run.jsonl")" ]
	[ "$("$spill" log -f --json "$data/run.jsonl")" = "$("$spill" log --json "$data/run.jsonl")" ]
	head -1 "$data/run.jsonl" | sed "s/\"host\":\"[^\"]*\"/\"host\":\"$(uname -n)\"/" >before.jsonl
	run "$spill" log -f before.jsonl
	ends_with 0
	run "$spill" log -f nothing.jsonl
	ends_with 1
	has "nothing.jsonl: No such file"
}

@test "-f survives rotation, removal and truncation" {
	begin_writer
	start_line >p.jsonl
	tell 'exec 8>>p.jsonl'
	begin_following p.jsonl
	until_line out "^llama-server"
	# The new file is there and empty for a while, and the old one still written to.
	tell "mv p.jsonl p.jsonl.1; : >p.jsonl; printf '%s\n' '$(note 1.5 to-the-old)' >&8"
	until_line out to-the-old
	# That was seen when the new one was there already.
	tell "printf '%s\n' '$(note 1.55 also-there)' >&8"
	until_line out also-there
	tell "exec 8>>p.jsonl; printf '%s\n' '$(note 1.6 to-the-new)' >&8"
	until_line out to-the-new
	tell "rm p.jsonl; printf '%s\n' '$(note 1.7 without-a-name)' >&8"
	until_line out without-a-name
	tell "exec 8>>p.jsonl; printf '%s\n' '$(note 1.8 made-anew)' >&8"
	until_line out made-anew
	tell ": >p.jsonl"
	until_true is_empty p.jsonl
	tell "printf '%s\n' '$(note 1.9 short)' >&8"
	until_line out short
	exec 7>&-
	until_true ended $follower
	[ "$(grep -oE 'to-the-old|also-there|to-the-new|without-a-name|made-anew|short' out | tr '\n' ' ')" = "to-the-old also-there to-the-new without-a-name made-anew short " ]
}

@test "-f of a folder: several at once, and those that come" {
	mkdir logs
	begin_writer
	start_line >logs/a.jsonl
	begin_following logs
	until_line out "^==> logs/a.jsonl <=="
	start_line >logs/b.jsonl
	until_line out "^==> logs/b.jsonl <=="
	note 1.5 of-a >>logs/a.jsonl
	echo >>logs/a.jsonl
	until_line out of-a
	mv logs/a.jsonl logs/a.jsonl.1
	note 1.6 of-b >>logs/b.jsonl
	echo >>logs/b.jsonl
	until_line out of-b
	exec 7>&-
	until_true ended $follower
	[ "$(grep -cE '^llama-server' out)" = 2 ]
	[ "$(sed -nE 's/.*note  x: //; /^(==>|of-[ab])|no exit line/p' out)" = "==> logs/a.jsonl <==
==> logs/b.jsonl <==
==> logs/a.jsonl <==
of-a
==> logs/b.jsonl <==
of-b
==> logs/a.jsonl <==
no exit line: the program was killed, has crashed, or ended by exec or a system call
==> logs/b.jsonl <==
no exit line: the program was killed, has crashed, or ended by exec or a system call" ]
}

@test "-f ends on Ctrl-C as a log that was read ends" {
	begin_writer
	start_line >p.jsonl
	set -m
	begin_following --json p.jsonl
	set +m
	until_line out start
	kill -INT $follower
	until_true ended $follower
	python3 -c 'import json; assert len(json.load(open("out"))) == 1'
	exec 7>&-
}

@test "of a process: the log that it has open, however it is called" {
	begin_writer
	start_line >named
	echo text >other
	tell "exec 6>>other 8>>named; echo done >told"
	until_true [ -s told ]
	run "$spill" log $writer
	ends_with 0
	has "llama-server (pid $writer)"
	has_not "other"
	# In another place, as of a container: through the process itself.
	tell "rm named; echo done >told2"
	until_true [ -s told2 ]
	run "$spill" log $writer
	ends_with 0
	has "llama-server (pid $writer)"
	begin_following $writer
	until_line out "^llama-server"
	tell "printf '%s\n' '$(note 1.5 later)' >&8"
	until_line out later
	exec 7>&-
	until_true ended $follower
}

@test "a program on the simulated GPU, followed by its pid from its first allocation to its end" {
	no_sanitizer
	# A routine line is in the file with the next activity: the program goes on until it is told to end.
	cat >program.py <<-'END'
		import ctypes, os, time
		cu, context, pointer = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p(), ctypes.c_uint64()
		cu.cuInit(0)
		cu.cuCtxCreate_v2(ctypes.byref(context), 0, 0)
		cu.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(3 << 20))
		while not os.path.exists("go"):
		    cu.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(1024))
		    cu.cuMemFree_v2(pointer)
		    time.sleep(0.01)
		cu.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(5 << 20))
	END
	LD_LIBRARY_PATH=$BUILD/tests/sim "$spill" run -- python3 program.py &
	writer=$!
	has_begun() { "$spill" log $writer 2>/dev/null | grep -q "(pid $writer)"; }
	until_true has_begun
	begin_following $writer
	until_line out "(pid $writer)"
	: >go
	until_true ended $follower
	run cat out
	has "program.py (pid $writer)"
	has "3.00 MiB"
	has "5.00 MiB"
	has "end (exit)"
}

@test "of a process that has ended: the newest of its number in the default folder" {
	mkdir -p .local/state/spill
	writer=4711
	start_line | sed 's/llama-server/old/' >.local/state/spill/old-4711.jsonl
	start_line | sed 's/llama-server/new/' >.local/state/spill/new-4711.jsonl
	writer=4712
	start_line | sed 's/llama-server/wrong/' >.local/state/spill/wrong-4711.jsonl
	touch -d 2001-01-01 .local/state/spill/old-4711.jsonl
	run "$spill" log 4711
	ends_with 0
	has "new (pid 4711)"
	has_not "old"
	run "$spill" log 11
	ends_with 1
	has "spill log: 11: no such file, and no process with that number has a log open or left one in the default folder"
	cp "$data/moves.jsonl" 4711
	run "$spill" log 4711
	has_not "new (pid"
	XDG_STATE_HOME=/nowhere run "$spill" log 999999999
	ends_with 1
}

@test "of nothing in particular: the newest in the default folder, by its name" {
	run "$spill" log
	ends_with 1
	has "spill log: $HOME/.local/state/spill: no log is there"
	mkdir -p .local/state/spill
	writer=4711
	start_line | sed 's/llama-server/old/' >.local/state/spill/old-4711.jsonl
	touch -d 2001-01-01 .local/state/spill/old-4711.jsonl
	writer=4712
	start_line | sed 's/llama-server/new/' >.local/state/spill/new-4712.jsonl
	echo "no log" >.local/state/spill/newest.jsonl
	run "$spill" log
	ends_with 0
	[ "${lines[0]}" = "==> $HOME/.local/state/spill/new-4712.jsonl <==" ]
	has "new (pid 4712)"
	has_not "old"
	[ "$("$spill" log --json | jq -r '.[0].program')" = new ]
}

@test "wrong use: two; options that are none; what is not there" {
	run "$spill" log nothing.jsonl
	ends_with 1
	has "No such file"
	run "$spill" log .
	ends_with 1
	run "$spill" log a b
	ends_with 2
	run "$spill" log --folow a
	ends_with 2
	has "the nearest is '--follow'"
	run "$spill" log -F a
	ends_with 2
	run "$spill" log --follow=5 a
	ends_with 2
	has "takes no value"
	run "$spill" log ""
	ends_with 1
}
