load help.bash

@test "a run, line by line" {
	run "$spill" log "$data/run.jsonl"
	ends_with 0
	has_line "llama-server (pid 4711) on node7, 2026-11-21T03:50:51.123456Z, libspill 0.1.0, cuda driver 13000"
	has_line "  device 0: NVIDIA H200, 140.40 GiB"
	has_line "  policy: device.limit = 4GiB (environment)"
	has_not "spill.mode"
	has "    0.001234  alloc #1      1.00 GiB  device  device 0  cudaMalloc  libggml-cuda.so+0x1a2b  fits  41 us"
	has "   12.345678  alloc #2      7.04 GiB  split (5.00 GiB device, 2.04 GiB host)"
	has "oom; tried device: CUDA_ERROR_OUT_OF_MEMORY  401.2 ms"
	has "OUT OF MEMORY  512 B asked"
	has "refused by host.limit; free 1.00 MiB of 8.00 GiB; live 6.00 GiB device, 2.04 GiB host"
	has "; largest: 7.04 GiB #2 libggml-cuda.so+0x1a2b"
	has "   14.000000  free  #2      7.04 GiB  split  device 0  cuMemFree_v2  prog+0x2  free  1.5 ms"
	has "end (exit): 1 of 2 allocations spilled, 2.04 GiB host spilled in all; 1 out of memory; peak 6.00 GiB device, 2.04 GiB host; still held 1.00 GiB device"
	has_not "no exit line"
}

@test "what moved, and for whom" {
	run "$spill" log "$data/moves.jsonl"
	ends_with 0
	has "    1.000000  alloc #1      7.04 GiB  movable (7.04 GiB device)  device 0  cudaMalloc"
	has_line "    2.000000  move  #1      2.00 GiB to host memory, now 5.04 GiB device, 2.00 GiB host  device 0  cuMemCreate  libggml-cuda.so+0x99  oom  425.0 ms"
	has_line "    3.000000  move  #1      2.00 GiB back to the device, now 7.04 GiB device  device 0  free  76.0 ms"
	has "; moved 2.00 GiB to host memory in 1 moves, 2.00 GiB back in 1; still held"
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
	has_line "llama-server (pid 4711) on node7, 2026-11-21T03:50:51.123456Z, libspill 0.1.0, cuda driver 13000, SLURM_PROCID=3, OMPI_COMM_WORLD_RANK=5"
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

@test "how many requests each rule had, so that one that never matched is seen" {
	{ run_with all "$(big 2 host)" "$(big 5 host)"; run_with all "$(big 2 host)"; } >rules.jsonl
	run "$spill" log rules.jsonl
	ends_with 0
	[ "$(grep -n '^  rule ' <<<"$output")" = "8:  rule big: 2 requests
9:  rule never: none of these requests
16:  rule big: 1 requests
17:  rule never: none of these requests" ]
	run "$spill" log --json rules.jsonl
	has_not "none of these"
}

@test "requests that have no lines are not said to be none" {
	run_with spills >rules.jsonl
	run "$spill" log rules.jsonl
	has_not "requests"
	has "policy: rule never"
	run_with all '{"v":1,"kind":"drop","t":3.5,"peak":{"device_bytes":7,"host_bytes":0,"managed_bytes":0}}' >rules.jsonl
	run "$spill" log rules.jsonl
	ends_with 0
	has_not "requests"
	run_with all '{"v":1,"kind":"note","t":3.5,"tid":1,"code":"log-lost","text":"x"}' >rules.jsonl
	run "$spill" log rules.jsonl
	ends_with 0
	has_not "requests"
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
	has_line "1 records of a later version of spill are not shown"
	[ "$(grep -c alloc <<<"$output")" -eq 2 ]
	"$spill" log --json later.jsonl | python3 -c 'import json, sys; assert json.load(sys.stdin)[2]["v"] == 2'
}

@test "text of a log cannot steer the terminal" {
	run "$spill" log "$data/run.jsonl"
	has "note  evil: a ?[31mred?[0m note"
	has_not $'\x1b'
}

@test "a log whose program was killed" {
	run "$spill" log "$data/killed.jsonl"
	ends_with 0
	has "killed.jsonl:4: the last line is cut"
	has "alloc #2"
	has_line "no exit line: the program still runs, or was killed"
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
	ends_with 0
	has_line "empty.jsonl: no records"
	run "$spill" log --json empty.jsonl
	has_line "[]"
}

@test "no such file; two files; none; a folder" {
	run "$spill" log nothing.jsonl
	ends_with 1
	has "No such file"
	run "$spill" log .
	ends_with 1
	run "$spill" log
	ends_with 2
	run "$spill" log a b
	ends_with 2
}
