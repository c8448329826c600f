load help.bash
load logs.bash

oracle() { python3 "$BATS_TEST_DIRNAME/report_oracle.py" "$@"; }
json() { "$spill" report --json "$@"; }

# run.jsonl with the file of a caller: `with_file PATH [BUILD_ID]`. It was recorded here, and just now.
with_file() {
	sed -e "1s/node7/$(uname -n)/;1s/\"boot\":\"b\"/\"boot\":\"$(cat /proc/sys/kernel/random/boot_id)\"/" \
		-e "1s/2026-11-21T03:50:51/$(date -u -d '+1 minute' +%FT%T)/" \
		-e "1a {\"v\":1,\"kind\":\"file\",\"t\":0,\"name\":\"libggml-cuda.so\",\"path\":\"$1\"${2:+,\"build_id\":\"$2\"}}" "$data/run.jsonl"
}
functions() { json "$@" | jq -c '.runs[0].functions'; }
alloc='_ZN18ggml_cuda_pool_vmm5allocEmPm'
# The same with a file that has its function.
with_function() {
	elf function.so build_id=0011 "functions=$alloc:0x1a00:0x40"
	with_file "$PWD/function.so" 0011
}

@test "the questions in their order, and what they are answered" {
	run "$spill" report "$data/run.jsonl"
	ends_with 1
	[ "${lines[0]}" = "llama-server (pid 4711) on node7, 2026-11-21T03:50:51.123456Z, libspill 0.1.0, cuda driver 13.0" ]
	[ "${lines[1]}" = "  ended          by itself after 15.0 s (the log does not know the exit code)" ]
	[ "${lines[2]}" = "  out of memory  1 request was refused" ]
	[ "${lines[3]}" = "  refused by     host.limit (rule default); 512 B asked by prog+0x1 with cudaMalloc" ]
	[[ ${lines[4]} == "  would help     a larger host.limit; or less, for example libggml-cuda.so+0x1a2b holds 7.04 GiB"* ]]
	[ "${lines[5]}" = "  spilled        yes: up to 2.04 GiB was in host memory; at most 8.04 GiB was wanted at once, and at most 6.00 GiB was on the card" ]
	[ "${lines[6]}" = "  read in place  the time that kernels lost by reading it there is not known" ]
	[ "${lines[7]}" = "  memory lacked  device 0: the log does not tell what was free" ]
	[ "${lines[8]}" = "  placed off     1 of 2 allocations, in all 2.04 GiB host" ]
	[ "${lines[9]}" = "  where          split: 2.04 GiB of it on the host, the rest on the card" ]
	[ "${lines[10]}" = "  why            2.04 GiB because the card was full" ]
	[ "${lines[11]}" = "  asked by       libggml-cuda.so+0x1a2b 2.04 GiB" ]
	[[ ${lines[12]} == "  to fit         a smaller batch, model or -ngl, or a shorter context length, so that no host memory is needed: 4.04 GiB less on device 0 (8.04 GiB needed - 4.00 GiB room = 4.04 GiB), or device.limit = 8629600768 or a little more (spill replay has the exact value)" ]]
	[ "${lines[13]}" = "  log            $data/run.jsonl" ]
}

@test "without an out of memory the spills come first, and what they cost" {
	run "$spill" report "$data/moves.jsonl"
	diff <(sed -n '2,/^$/s/^  \(.\{13\}\).*/\1/p' <<<"$output" | sed 's/ *$//') - <<-END
		ended
		spilled
		cost
		read in place
		memory lacked
		asked by
		moved to host
		moved back
		out of memory
		log
	END
	has_line "  out of memory  none"
}

@test "the parts in their order: first what is wrong with the log, then from devices to single requests" {
	local caller='{"caller":"libggml-cuda.so+0x1a2b","count":1,"device_bytes":1073741824,"host_bytes":0,"managed_bytes":0}'
	{
		head -1 "$data/run.jsonl"
		sed -n 2,4p "$data/moves.jsonl"
		echo torn
		grep -E '"kind":"(oom|note)"' "$data/run.jsonl" | sed "s/\"holders\"/\"callers\":[$caller],&/"
		tail -1 "$data/moves.jsonl"
	} >all.jsonl
	run "$spill" report all.jsonl
	ends_with 1
	diff <(sed -n '/^  log /,$p' <<<"$output" | grep -oE '^  log|THE SUMS|cannot be read as a record|^  device|would it have fitted|by (caller|place|rule|reason)$|the largest allocations|moved to the host most|^  out of memory: .*|^  at 13\.0|^    ([a-z ]*:|refused|this process)|^  notes: .*|evil|^  allocations|^  moved|^  bytes|^  at the end|^  at most|^  placed off') - <<-END
		  log
		THE SUMS
		    ooms:
		cannot be read as a record
		  device
		would it have fitted
		  device
		by caller
		by place
		by rule
		by reason
		the largest allocations
		moved to the host most
		  out of memory: 1
		  at 13.0
		    refused
		    device:
		    this process
		    by caller:
		    the largest:
		    what would have helped:
		  notes: 1
		evil
		  allocations
		  moved
		  bytes
		  at the end
		  at most
		  placed off
	END
	has_line "      1.00 GiB  libggml-cuda.so+0x1a2b  in 1 allocation: 1.00 GiB device"
}

@test "totals to the byte, and equal to the exit line's" {
	run "$spill" report "$data/run.jsonl"
	has_line "  allocations 2, frees 1, placed off the card 1, refused as out of memory 1"
	has_line "  moved to the host 0 times (0 bytes), moved back 0 times (0 bytes)"
	has_line "  at the end            1073741824                   0                   0"
	has_line "  at most               6442450944          2187149312                   0"
	has_line "  placed off                     0          2187149312                   0"
	has_line "  each of these figures equals the program's own count (exit line)"
}

@test "tables by caller, place, rule and reason; the largest" {
	run "$spill" report "$data/run.jsonl"
	has_line "             2    8.04 GiB    8.04 GiB    1.00 GiB    2.04 GiB  libggml-cuda.so+0x1a2b"
	has_line "             1    7.04 GiB    7.04 GiB           -    2.04 GiB  split"
	has_line "             2    8.04 GiB    8.04 GiB    1.00 GiB    2.04 GiB  default"
	has_line "             1    1.00 GiB    1.00 GiB    1.00 GiB           -  because it fitted"
	has_line "      7.04 GiB  #2       split     cuMemAlloc_v2  libggml-cuda.so+0x1a2b  at 12.345 s"
	has_line "      1.00 GiB  #1       device    cudaMalloc  libggml-cuda.so+0x1a2b  at 0.001 s, held at the end"
	has_line "  0         140.40 GiB    6.00 GiB    2.04 GiB             -    1.00 GiB           -            -  NVIDIA H200"
	sed '2{s/,"rule":"default"//;s/,"caller":"[^"]*"//}' "$data/run.jsonl" >nameless.jsonl
	run "$spill" report nameless.jsonl
	has_line "             1    1.00 GiB    1.00 GiB    1.00 GiB           -  no rule: the program named the place itself"
	has_line "             1    1.00 GiB    1.00 GiB    1.00 GiB           -  not known"
}

@test "an out of memory: what was asked, by whom, what refused, who held what, what would have helped" {
	run "$spill" report "$data/run.jsonl"
	has_line "  at 13.000000 s: 512 B asked by prog+0x1 with cudaMalloc, device 0"
	has_line "    refused by host.limit (rule default); tried device: CUDA_ERROR_OUT_OF_MEMORY, host: host.limit"
	has_line "    device: 1.00 MiB free of 8.00 GiB"
	has_line "    this process held 6.00 GiB device, 2.04 GiB host"
	has_line "    the largest:"
	has_line "      7.04 GiB  #2  split  cuMemAlloc_v2  libggml-cuda.so+0x1a2b"
	has "    what would have helped: a larger host.limit; or less, for example libggml-cuda.so+0x1a2b holds 7.04 GiB"
}

@test "observed only: that libspill would have tried another place is part of what would have avoided it" {
	sed '/"kind":"oom"/s/"rule":/"would":"split",&/' "$data/run.jsonl" >observed.jsonl
	run "$spill" report observed.jsonl
	has "; or spill.mode = spill"
	has "    what would have helped: spill.mode = spill: it would have been tried as split"
	sed -i 's/"would":"split"/"would":"refuse"/' observed.jsonl
	run "$spill" report observed.jsonl
	has_not "spill.mode = spill"
}

@test "a request that nothing can hold is left out of what fits and of what would have avoided it, and told" {
	run "$spill" report "$data/run.jsonl"
	local fits=$(grep ' no: ' <<<"$output") avoided=$(grep '^  to fit ' <<<"$output")
	sed '/"kind":"oom"/{p;s/"bytes":512/"bytes":1152921504606846976/}' "$data/run.jsonl" >absurd.jsonl
	sed -i 's/"ooms":1/"ooms":2/' absurd.jsonl
	run "$spill" report absurd.jsonl
	ends_with 1
	has "$fits"
	has "$avoided; 1 request of more than 16 times device 0 would fit nowhere: either the program probes for memory, or a size is wrong"
	has "    what would have helped: nothing: it is more than 16 times the memory of the device"
	sed '/"kind":"alloc"/d;/"kind":"free"/d;/"kind":"exit"/d;s/"bytes":512/"bytes":1152921504606846976/' "$data/run.jsonl" >only.jsonl
	run "$spill" report only.jsonl
	has "  to fit         nothing: 1 request of more than 16 times device 0 would fit nowhere"
}

@test "tables have ten rows, and say how many more there are" {
	for more in 0 1 3; do
		head -1 "$data/run.jsonl" >many.jsonl
		for number in $(seq $((10 + more))); do
			printf '{"v":1,"kind":"alloc","t":%d.0,"seq":%d,"order":%d,"tid":1,"dev":0,"api":"cudaMalloc","caller":"many.so+0x%x","bytes":%d,"ptr":"0x%x000000","place":"device","device_bytes":%d,"reason":"fits","rule":"default","us":1}\n' \
				"$number" "$number" "$number" "$number" $((number << 20)) "$number" $((number << 20))
		done >>many.jsonl
		run "$spill" report many.jsonl
		[ "$(sed -n '/ by caller$/,/^$/p' <<<"$output" | grep -c 'many.so')" = 10 ]
		[ "$(sed -nE 's/^ +([0-9]+) more, in --json$/\1/p' <<<"$output")" = "${more#0}" ]
	done
}

@test "rows of a table: by what they held at most, then by what they asked for, then by name" {
	local number=0 name mib line
	{
		head -1 "$data/run.jsonl"
		for line in c:2 b:2 d:2 a:4; do
			number=$((number + 1)) name=${line%:*} mib=${line#*:}
			printf '{"v":1,"kind":"alloc","t":%d.0,"seq":%d,"order":%d,"tid":1,"dev":0,"api":"cudaMalloc","caller":"%s.so+0x1","bytes":%d,"ptr":"0x%x000000","place":"device","device_bytes":%d,"reason":"fits","rule":"default","us":1}\n' \
				$number $number $number "$name" $((mib << 20)) $number $((mib << 20))
		done
		# d asks for its memory once more.
		printf '{"v":1,"kind":"free","t":5.0,"seq":3,"order":5,"tid":1,"dev":0,"api":"cudaFree","caller":"x+0x1","ptr":"0x3000000","bytes":2097152,"place":"device","reason":"free","us":1}\n'
		printf '{"v":1,"kind":"alloc","t":6.0,"seq":5,"order":6,"tid":1,"dev":0,"api":"cudaMalloc","caller":"d.so+0x1","bytes":2097152,"ptr":"0x3000000","place":"device","device_bytes":2097152,"reason":"fits","rule":"default","us":1}\n'
	} >rows.jsonl
	run "$spill" report rows.jsonl
	[ "$(sed -n 's/^.*  \([a-d]\)\.so+0x1$/\1/p' <<<"$output" | head -4 | tr -d '\n')" = adbc ]
}

@test "an out of memory: sums by caller and place, the others on the device, by how much a limit was too small" {
	local more='"ours":4294967296,"refusal":{"limit":1073741824,"held":1073741824,"asked":512,"room":4096}'
	local groups='"callers":[{"caller":"liba.so+0x1","count":3,"device_bytes":1024,"host_bytes":2048,"managed_bytes":0}],"places":[{"place":"split","count":2,"device_bytes":1024,"host_bytes":0,"managed_bytes":0}]'
	sed "/\"kind\":\"oom\"/s/\"refused_by\"/$more,$groups,&/" "$data/run.jsonl" >more.jsonl
	run "$spill" report more.jsonl
	has_line "    device: 1.00 MiB free of 8.00 GiB; 4.00 GiB held by this process; 4.00 GiB held by other programs and by contexts and code, this program's too (nvidia-smi or rocm-smi shows whose)"
	has_line "    this process held 6.00 GiB device, 2.04 GiB host (6.00 GiB on other devices); by place: split 1.00 KiB in 2"
	has_line "      3.00 KiB  liba.so+0x1  in 3 allocations: 1.00 KiB device, 2.00 KiB host"
	has "    what would have helped: host.limit = 1025MiB at least (it is 1.00 GiB; more if the program goes on to ask); or less, for example liba.so+0x1 holds 3.00 KiB in 3 allocations"
	run "$spill" report --json more.jsonl
	jq -e '.runs[0].ooms[0] | .ours == 4294967296 and .refusal.asked == 512 and .callers[0].held.host_bytes == 2048 and .places[0].count == 2' <<<"$output"
}

@test "of many out of memory the first ten and the last ten" {
	awk '/"kind":"oom"/ { for (i = 1; i <= 25; i++) { line = $0; sub(/13.000000/, 13 "." 100000 + i, line); print line } next } { print }' \
		"$data/run.jsonl" | sed 's/"ooms":1/"ooms":25/' >many.jsonl
	run "$spill" report many.jsonl
	has_line "  out of memory: 25"
	has_line "  … 5 between these"
	[ "$(grep ' asked by prog' <<<"$output" | cut -c13-14 | xargs)" = "$(echo {01..10} {16..25})" ]
	[ "$(json many.jsonl | jq -c '[.runs[0].ooms[].t * 1e6 | round - 13100000]')" = "$(jq -cn '[range(1; 11), range(16; 26)]')" ]
}

@test "what would have helped goes by what refused" {
	while IFS='|' read -r refused advice; do
		sed "s/\"refused_by\":\"host.limit\"/\"refused_by\":\"$refused\"/" "$data/run.jsonl" >one.jsonl
		run "$spill" report one.jsonl
		has "what would have helped: $advice"
	done <<-'END'
		device.limit|a larger device.limit
		host.reserve|more free memory of the host, or a smaller host.reserve
		host.pressure|more free memory of the host
		rule.place|another place in the rule: it says refuse (rule default)
		rule.over|another over in the rule
		rule.cap|a larger cap of the rule
		stream capture|the allocation before the capture
		CUDA_ERROR_OUT_OF_MEMORY|other places (oom.chain): each place that was tried refused
	END
	sed 's/,"tried":\[.*\],"holders":\[.*\]}/}/; s/"free":1048576/"free":256/; s/"refused_by":"[^"]*"/"refused_by":"X"/' "$data/run.jsonl" >one.jsonl
	run "$spill" report one.jsonl
	has "what would have helped: a place for memory that does not fit: none was tried (oom.chain, over in a rule); or 256 B less in use on the device"
	sed 's/"refused_by":"host.limit"/"refused_by":"X","would":"split"/' "$data/run.jsonl" >one.jsonl
	run "$spill" report one.jsonl
	has "what would have helped: spill.mode = spill: it would have been tried as split"
}

@test "an out of memory of oom.honest_first is told and no finding" {
	sed 's/"refused_by":"host.limit"/"refused_by":"oom.honest_first"/' "$data/run.jsonl" >honest.jsonl
	run "$spill" report honest.jsonl
	ends_with 0
	has_line "  out of memory  none was final; 1 request was refused once on purpose, so that the program frees its cache and asks again"
	has_line "  out of memory: 1 refused once on purpose (oom.honest_first), at 13.000000 s: spill log --kind oom lists them"
	[ "$(json honest.jsonl | jq -c '.runs[0] | [.ooms, .honest, .totals.ooms]')" = '[[],1,1]' ]
	[ "$(json honest.jsonl | jq '.runs[0].devices[0].fit.refused')" -eq 0 ]
}

@test "moves, by reason" {
	run "$spill" report "$data/moves.jsonl"
	ends_with 0
	has_line "  spilled        yes: up to 2.00 GiB was in host memory; at most 7.04 GiB was wanted at once, and at most 7.04 GiB was on the card, at different moments"
	has_line "  cost           moves held the program up for 0.50 s, 13 % of the 4.0 s"
	has_line "  moved to host  2.00 GiB in 1 move: 2.00 GiB because the card was full"
	has_line "  moved back     2.00 GiB in 1 move: 2.00 GiB because there was room again"
	has_line "         moves       moved        size host at end  moved to the host most"
	has_line "             1    2.00 GiB    7.04 GiB           -  #1       libggml-cuda.so+0x1a2b"
}

@test "sums that differ are said loudly and are a finding" {
	sed 's/"frees":1/"frees":2/; s/"peak":{"device_bytes":6442450944/"peak":{"device_bytes":6442450945/' "$data/run.jsonl" |
		grep -v '"kind":"oom"' | sed 's/"ooms":1/"ooms":0/' >wrong.jsonl
	run "$spill" report wrong.jsonl
	ends_with 1
	has_line "  THE SUMS OF THE LINES DIFFER FROM THE PROGRAM'S OWN COUNT (exit line):"
	has_line "    frees: lines 1, exit line 2"
	has_line "    peak.device_bytes: lines 6442450944, exit line 6442450945"
	[ "$(grep -c ': lines ' <<<"$output")" = 2 ]
	has_not "equals the program's own count"
	[ "$(json wrong.jsonl | jq -c '[.runs[0].differences[].name]')" = '["frees","peak.device_bytes"]' ]
}

@test "a killed program: totals of its lines, its last line cut" {
	run "$spill" report "$data/killed.jsonl"
	ends_with 0
	has "killed.jsonl:4: the last line is cut"
	has "  ended          no exit line: the program still runs, was killed, has crashed, or ended by exec or a system call; the figures cover its lines; the last one, at 12.345678 s, is an allocation of 7.04 GiB; a cut line follows"
	has_line "  allocations 2, frees 0, placed off the card 1, refused as out of memory 0"
	has_line "  at the end            6442450944          2187149312                   0"
	has_not "equals the program's own count"
}

@test "a program that still runs, and one that is gone" {
	boot=$(cat /proc/sys/kernel/random/boot_id)
	killed_here $$ "$boot" >runs.jsonl
	begin="  ended          no exit line: the program" end="; the figures cover its lines; the last one, at 12.345678 s"
	exec 9>>runs.jsonl # as libspill has it open
	run "$spill" report runs.jsonl
	has "$begin still runs$end"
	[ "$(json runs.jsonl | jq -r '.runs[0] | .ending')" = runs ]
	# What follows in its file is of a later process.
	{ cat runs.jsonl; echo; cat "$data/moves.jsonl"; } >both.jsonl
	cp both.jsonl runs.jsonl
	[ "$(json runs.jsonl | jq -r '.runs[0] | .ending')" = "not known" ]
	exec 9>&-
	# It is there, but does not have the log open any more, as after exec.
	killed_here $$ "$boot" >runs.jsonl
	run "$spill" report runs.jsonl
	has "$begin still runs, was killed, has crashed, or ended by exec or a system call$end"
	killed_here "$(ended_pid)" "$boot" >gone.jsonl
	run "$spill" report gone.jsonl
	has "$begin was killed, has crashed, or ended by exec or a system call$end"
	[ "$(json gone.jsonl | jq -r '.runs[0] | .ending')" = gone ]
	# Its number in a container may be nobody's here. Whoever holds the lock runs.
	run flock gone.jsonl "$spill" report gone.jsonl
	has "$begin still runs, was killed, has crashed, or ended by exec or a system call$end"
	# Nor does another container see who holds it.
	run flock gone.jsonl "$BATS_TEST_DIRNAME/../alone.sh" "$spill" report gone.jsonl
	has "$begin still runs, was killed, has crashed, or ended by exec or a system call$end"
	killed_here $$ 0123 >earlier.jsonl # before this machine was started again
	[ "$(json earlier.jsonl | jq -r '.runs[0] | .ending')" = gone ]
	[ "$(json "$data/killed.jsonl" | jq -r '.runs[0] | .ending')" = "not known" ] # on another machine
	[ "$(json "$data/run.jsonl" | jq -r '.runs[0] | .ending')" = exit ]
}

@test "a folder tells how each program ended, and which one it was" {
	mkdir runs
	killed_here "$(ended_pid)" "$(cat /proc/sys/kernel/random/boot_id)" >runs/a.jsonl
	cp "$data/killed.jsonl" runs/b.jsonl
	cp "$data/run.jsonl" runs/c.jsonl
	run "$spill" report --summary runs
	sed -nE 's/^  -     (.{9}) .*  (llama-server) +/\1 \2 /p' <<<"$output" | tr -s ' ' >rows
	[ "$(cat rows)" = "gone llama-server $(uname -n) runs/a.jsonl
not known llama-server node7 runs/b.jsonl
exit llama-server node7 runs/c.jsonl" ]
	has "     oom  program           host          log"
}

@test "compressed logs in a folder are named" {
	mkdir runs
	cp "$data/moves.jsonl" runs/a.jsonl
	run "$spill" report --summary runs
	has_not compressed
	gzip -c runs/a.jsonl >runs/a.jsonl.1.gz
	run "$spill" report --summary runs
	ends_with 0
	has_line 'spill report: runs: 1 compressed log was not read, such as a.jsonl.1.gz: decompress it, or use `zcat FILE | spill report /dev/stdin`'
	for suffix in xz zst bz2 lz4; do cp runs/a.jsonl.1.gz "runs/b.jsonl.$suffix"; done
	touch runs/c.gz runs/.gz runs/d.jsonl.tar.gz
	run "$spill" log runs
	has_line 'spill log: runs: 5 compressed logs were not read, such as a.jsonl.1.gz: decompress it, or use `zcat FILE | spill log /dev/stdin`'
	rm runs/a.jsonl
	run "$spill" report runs
	ends_with 1
	has "no *.jsonl in it"
	has "5 compressed logs were not read"
}

@test "the figures of generated runs of several threads, added up by another program" {
	for seed in 1 2 3 4; do
		oracle make "$seed" 2500 >made.jsonl
		json made.jsonl >report.json || [ $? -eq 1 ]
		oracle check made.jsonl report.json
	done
	oracle make 5 2500 killed >made.jsonl
	json made.jsonl >report.json || [ $? -eq 1 ]
	oracle check made.jsonl report.json
	[ "$(jq '.runs[0].exited' report.json)" = false ]
}

# Of all that the report says: what is the same with sums as with a line for each.
same_of_both='.runs[0] | [.totals, .devices, .demoted, .promoted, .moved, .honest, (.ooms | length),
	([.by_caller, .by_place, .by_rule, .by_reason][] | map(del(.peak)) | sort_by(.name))]'

@test "sums of what has no line: the same figures as with a line for each" {
	for seed in 1 2 3 4 5 6; do
		oracle make "$seed" 2500 each >each.jsonl
		oracle make "$seed" 2500 all >all.jsonl
		for log in each all; do json $log.jsonl >$log.json || [ $? -eq 1 ]; done
		[ "$(grep -c '"sum"' all.jsonl)" -gt 100 ]
		[ "$(wc -l <all.jsonl)" -lt "$(wc -l <each.jsonl)" ]
		diff <(jq "$same_of_both" each.json) <(jq "$same_of_both" all.json)
		jq -e '.runs[0] | .differences == [] and .late_events == 0 and .unknown_frees == 0 and .all_told' all.json
	done
}

@test "sums of several threads, whose lines are not in order" {
	for seed in 1 2 3 4; do
		oracle make "$seed" 2500 threads >made.jsonl
		json made.jsonl >report.json || [ $? -eq 1 ]
		jq -e '.runs[0] | .differences == [] and .late_events == 0 and .unknown_frees == 0' report.json
		diff <(jq .runs[0].totals report.json) <(tail -n 1 made.jsonl | jq 'del(.v, .kind, .t, .how, .hits)')
	done
}

# Of an H200 that another process had filled, by a libspill whose log did not yet tell that (data/README).
example="$BATS_TEST_DIRNAME/data/first-2026-11-21.jsonl"

@test "what was moved to the host counts as spilled, and its cost is told: the same in text, JSON and the page" {
	size="up to 1.63 GiB was in host memory; at most 12.52 GiB was wanted at once, and at most 11.34 GiB was on the card, at different moments"
	cost="moves held the program up for 0.30 s, 2 % of the 14.0 s"
	run "$spill" report "$example"
	ends_with 0
	has_line "  spilled        yes: $size"
	has_line "  cost           $cost"
	[ "$(json "$example" | jq -r '.runs[0].story | .size, .cost')" = "$size"$'\n'"$cost" ]
	"$spill" report --html page.html "$example"
	grep -qF "\"size\":\"$size\",\"cost\":\"$cost\"" page.html
	# A second line of the same move has the time since the same begin: that time counts once.
	sed '/"kind":"move"/{p;s/"seq":1,/"seq":9,/;s/"order":2,/"order":9,/}' "$data/moves.jsonl" >twice.jsonl
	[ "$(json twice.jsonl | jq .runs[0].totals.away.moves_us)" = "$(json "$data/moves.jsonl" | jq .runs[0].totals.away.moves_us)" ]
}

# kept/use.jsonl is of a run on the simulator, whose link has an eighth of the device's rate.
@test "the time that kernels lost by reading host memory: the same in text, JSON, the page and spill log" {
	log=$data/kept/use.jsonl
	told="kernels lost about 2.5 s, 27 % of the 9.2 s, by reading about 5.60 GiB of it over the link"
	[ "$(json "$log" | jq -r .runs[0].story.in_place)" = "$told" ]
	run "$spill" report "$log"
	has_line "  read in place  $told"
	"$spill" report --html - "$log" | grep -qF "\"in_place\":\"$told\""
	"$spill" log "$log" | tail -n 1 | grep -qF "; $told; still held "
	[ "$("$spill" log "$log" | grep -c 'use   of host memory so far: kernels lost about ')" = "$(grep -c '"kind":"use"' "$log")" ]
	# The last figures of a run that was killed.
	grep -v '"kind":"exit"' "$log" >killed.jsonl
	so_far=$(grep '"kind":"use"' "$log" | tail -n 1 | jq -c '.away | [.in_place_bytes, .in_place_us]')
	[ "$(json killed.jsonl | jq -c '.runs[0].story | [.in_place_bytes, .in_place_us]')" = "$so_far" ]
	[[ $(json killed.jsonl | jq -r .runs[0].story.in_place) == "kernels lost about "* ]]
	# With movable.follow = off nobody sees it.
	sed 's/"name":"movable.follow","value":"auto"/"name":"movable.follow","value":"off"/; s/,"followed_bytes":[^}]*//' "$log" >off.jsonl
	[ "$(json off.jsonl | jq -r .runs[0].story.in_place)" = "the time that kernels lost by reading it there is not known (movable.follow = off)" ]
}

# story.jsonl and story.stderr are of one run on the simulator: movable memory, and an out of memory at host.limit.
@test "a recorded run: stderr, text, JSON, the page, --summary and spill log tell one story" {
	json "$data/story.jsonl" >story.json || [ $? -eq 1 ]
	size=$(jq -r .runs[0].story.size story.json) cost=$(jq -r .runs[0].story.cost story.json)
	[[ $size == "up to "*" was in host memory; at most "*" was wanted at once, and at most "*" was on the card"* ]]
	[[ $cost == "moves held the program up for "*" s, "*" % of the "*" s" ]]
	[ "$(tail -n 1 "$data/story.stderr")" = "spill: script: $size; $cost; log /tmp/rp/story.jsonl" ]
	refused=$(jq -r .runs[0].ooms[0].refused story.json) advice=$(jq -r .runs[0].ooms[0].advice story.json)
	grep -qxF "spill:   refused by $refused" "$data/story.stderr"
	grep -qxF "spill:   what would have helped: $advice" "$data/story.stderr"
	run "$spill" report "$data/story.jsonl"
	ends_with 1
	[[ ${lines[3]} == "  refused by     $refused; "* ]]
	[ "${lines[4]}" = "  would help     $advice" ]
	[ "${lines[5]}" = "  spilled        yes: $size" ]
	[ "${lines[6]}" = "  cost           $cost" ]
	"$spill" report --html - "$data/story.jsonl" | grep -qF "\"size\":\"$size\",\"cost\":\"$cost\""
	"$spill" report --summary "$data/story.jsonl" | grep -qF " $(jq -r '.runs[0].story.peak_bytes / 1048576 * 100 | round / 100' story.json).00 MiB "
	# The log is older than the time that kernels lost.
	in_place="the time that kernels lost by reading it there is not known (movable.follow = off)"
	[ "${lines[7]}" = "  read in place  $in_place" ]
	"$spill" log "$data/story.jsonl" | grep -qF "; $size; $cost; $in_place; still held "
	# What others held, and so no room that the run would contradict.
	[ "$(jq -c '.runs[0].devices[0] | [.shortage.told, .shortage.others, .fit.others, (.fit.surplus < 0)]' story.json)" = '[true,2097152,2097152,true]' ]
	[ "$(jq -c '.runs[0].differences' story.json)" = '[]' ]
}

@test "of a log without the figures: that they are not known, and no surplus that the run contradicts" {
	run "$spill" report "$example"
	has_line "  memory lacked  device 0: the log does not tell what was free"
	has "not known: memory lacked, and the log does not tell what others held"
	has_not " GiB left"
	[ "$(json "$example" | jq -c '.runs[0].devices[0] | .shortage.told, .fit.surplus')" = $'false\nnull' ]
}

@test "memory that others held: who lacked, how much, and a deficit" {
	# The same log as a newer libspill writes it: 128 GiB are neither free nor ours.
	sed '/"kind":"move"/s/"us":/"seen":{"free":100000000,"total":150110011392,"ours":12000000000,"ago_us":5},"us":/' "$example" >seen.jsonl
	run "$spill" report seen.jsonl
	ends_with 0
	has "  memory lacked  device 0: 12.52 GiB needed by this program; 128.53 GiB held by other programs and by contexts and code, this program's too (nvidia-smi or rocm-smi shows whose); 95.37 MiB free of 139.80 GiB, at "
	has " 128.53 GiB           -  no: 1.25 GiB missing, and 64.00 MiB for device.reserve"
	has "less on device 0 (12.52 GiB needed + 64.00 MiB device.reserve - 11.27 GiB room = 1.32 GiB)"
	has "  to fit         less memory of other programs on device 0: they held 128.53 GiB of 139.80 GiB, with contexts and code, and 1.32 GiB less is enough (nvidia-smi or rocm-smi shows whose); or a smaller batch"
	has_not "as much less of other programs"
	# If they had left just enough, the reserve alone was short.
	wanted=$(json seen.jsonl | jq '.runs[0].devices[0].fit.wanted')
	sed "s/\"ours\":12000000000/\"ours\":$((150110011392 - 100000000 - 150109880320 + wanted))/" seen.jsonl >just.jsonl
	[ "$(json just.jsonl | jq -c '.runs[0].devices[0].fit | [.surplus, .reserved]')" = '[0,true]' ]
	run "$spill" report just.jsonl
	has_line "  to fit         a little less on the device: it was full up to device.reserve"
	# On a card of 13 GiB they held little more, and it may be contexts and code.
	sed 's/150110011392/13958643712/; s/150109880320/13958643712/' seen.jsonl >little.jsonl
	run "$spill" report little.jsonl
	has "  to fit         a smaller batch"
	has ", or as much less of other programs, contexts and libraries there"
	run "$spill" report seen.jsonl
	[ "$(json seen.jsonl | jq -c '.runs[0].devices[0] | .shortage.others, .fit.others, (.fit.surplus < 0)')" = $'138010011392\n138010011392\ntrue' ]
	# It just fitted, but not with what is to stay free.
	sed 's/"ours":12000000000/"ours":149900000000/' seen.jsonl >reserved.jsonl
	run "$spill" report --margin 0 reserved.jsonl
	has " left, too little for device.reserve"
	has "  to fit         a "
	[ "$(json reserved.jsonl | jq '.runs[0].devices[0].fit.reserved')" = true ]
}

@test "a policy that was refused is the advice, not spill.mode" {
	sed 's/"name":"spill.mode","value":"spill","source":"[^"]*"/"name":"spill.mode","value":"observe","source":"problem"/;
		s/"refused_by":"host.limit"/&,"would":"split"/' "$data/run.jsonl" >refused.jsonl
	grep -q '"source":"problem"' refused.jsonl
	error="/etc/spill/spill.conf:2:1: unknown key 'mdoe' in [spill]; the nearest is 'mode'"
	sed -i "1a{\"v\":1,\"kind\":\"note\",\"t\":0.1,\"tid\":1,\"code\":\"policy\",\"text\":\"$error; nothing is spilled, libspill only observes\"}" refused.jsonl
	run "$spill" report refused.jsonl
	has_line "  the policy was refused: $error"
	has_line "  would help     a policy without this error: $error; it would have been tried as split"
	has_line "    what would have helped: a policy without this error: $error; it would have been tried as split"
	has "; or a policy without this error: $error"
	has_not "spill.mode = spill"
	[ "$(json refused.jsonl | jq -r '.runs[0] | .problem, .ooms[0].advice')" = "$error"$'\n'"a policy without this error: $error; it would have been tried as split" ]
}

@test "lines that log.max left out, without the sum of what was off the device: at least" {
	run "$spill" report "$data/dropped.jsonl"
	has_line "  spilled        yes: memory was in host memory, and the log does not tell how much at once"
	sed 's/"kind":"drop",/&"away":{"peak_bytes":1048576,"wanted_bytes":3145728,"moves_us":20000},/' "$data/dropped.jsonl" >told.jsonl
	run "$spill" report told.jsonl
	has "  spilled        yes: up to 1.00 MiB was in host memory; at most 3.00 MiB was wanted at once, "
	has "  cost           moves held the program up for 0.02 s, 1 % of the "
}

@test "the largest allocations of sums have no end" {
	oracle make 1 200 all >all.jsonl
	json all.jsonl >all.json || [ $? -eq 1 ]
	largest=$(jq '[.runs[0].largest[] | select(.summed)] | length' all.json)
	run "$spill" report all.jsonl
	[ "$(grep -c ', in a sum$' <<<"$output")" -eq "$largest" ]
}

@test "of several runs: what spilled and what was moved, of each and of all" {
	run "$spill" report "$data/run.jsonl" "$data/moves.jsonl"
	has_line "  -     exit                 2             1    2.04 GiB           -           -    6.00 GiB    2.04 GiB           -       1  llama-server      node7         $data/run.jsonl"
	has "  -     exit                 1             0    2.00 GiB      0.50 s    2.00 GiB    7.04 GiB "
	[[ ${lines[4]} == "  sum  "*" 3             1    4.04 GiB      0.50 s    2.00 GiB  "* ]]
	[ "$(json "$data/run.jsonl" "$data/moves.jsonl" | jq -c '.sum | [.promotions, .promoted_bytes]')" = "[1,2147483648]" ]
}

@test "a folder of ranks: one line a rank, by number, and their sum" {
	mkdir ranks
	for rank in 0 1 2 10; do oracle make "$rank" 300 exit "$rank" >"ranks/b$((20 - rank))-1.jsonl"; done
	echo no log >ranks/README
	json ranks >report.json || [ $? -eq 1 ]
	[ "$(jq -c '[.runs[].rank]' report.json)" = '["0","1","2","10"]' ]
	jq -e '[.runs[].totals | [paths(numbers) as $at | {at: $at, value: getpath($at)}]] as $runs | [.sum | paths(numbers)] as $sums |
	       ($sums | length) == ($runs[0] | length) and
	       ([.sum | paths(numbers) as $at | getpath($at)] == [$sums[] as $at | [$runs[][] | select(.at == $at) | .value] | add])' report.json
	run "$spill" report ranks
	has_line "4 runs; their sum as if all had their peaks at once"
	grep -E '^  [0-9]+ .*\.jsonl$|^  sum ' <<<"$output" >rows
	[ "$(sed -E 's/^  ([0-9a-z]+) .* /\1 /' rows | head -4 | paste -sd ' ')" = \
		"0 ranks/b20-1.jsonl 1 ranks/b19-1.jsonl 2 ranks/b18-1.jsonl 10 ranks/b10-1.jsonl" ]
	[[ $(tail -1 rows) == "  sum "* ]]
	[ "$(grep -c 'rank [0-9]*) on node7' <<<"$output")" -eq 4 ]
}

# A log as that of a rank: rank LOG RANK HOST TIME [JOB]
rank() {
	sed "1s/\"host\":\"node7\"/\"host\":\"$3\",\"rank\":{\"RANK\":\"$2\"${5:+,\"SLURM_JOB_ID\":\"$5\"}}/
		1s/\"time\":\"[^\"]*\"/\"time\":\"2026-11-21T$4Z\"/" "$1"
}

@test "a device of a byte is full as often as a number can say" {
	mkdir ranks
	for rank in 0 1; do
		rank "$data/fit.jsonl" $rank node7 03:50:51.123456 17 | sed -E '1s/"bytes":[0-9]+/"bytes":1/g' >ranks/$rank.jsonl
	done
	run "$spill" report ranks
	has "39.02 GiB needed at once on device 0, 4294967295 % of it"
}

@test "the ranks that stand out come first: fullest, held up by moves, longest, first out of memory" {
	mkdir ranks
	rank "$data/moves.jsonl" 0 node7 03:50:51.123456 17 >ranks/a.jsonl
	rank "$data/run.jsonl" 1 node7 03:50:52.123456 17 >ranks/b.jsonl
	rank "$data/run.jsonl" 2 node8 03:50:51.623456 17 >ranks/c.jsonl
	rank "$data/fit.jsonl" 10 node8 03:50:51.123456 17 >ranks/d.jsonl
	run "$spill" report ranks
	ends_with 1
	[ "${lines[0]}" = "4 runs on 2 hosts; their sum as if all had their peaks at once" ]
	[ "${lines[1]}" = "  fullest        rank 10 of job 17 on node8: 41.48 GiB needed at once on device 1, 260 % of it" ]
	[ "${lines[2]}" = "  held up most   rank 0 of job 17 on node7: 0.50 s by moves, of a run of 4.0 s" ]
	[ "${lines[3]}" = "  longest run    rank 1 of job 17 on node7: 15.0 s" ]
	[ "${lines[4]}" = "  first oom      rank 10 of job 17 on node8: 6.0 s after the first rank began" ]
	[[ ${lines[5]} == "  rank  ended "* ]]
	json ranks >report.json || [ $? -eq 1 ]
	[ "$(jq -c '[.runs[] | [.rank, .job, .begin]]' report.json)" = '[["0","17",0],["1","17",1],["2","17",0.5],["10","17",0]]' ]
	[ "$(jq -c '.ranks | [.fullest.run, .held_up_most.run, .longest.run, .first_oom.run]' report.json)" = '[3,0,1,3]' ]
	[ "$(jq -c '.ranks.hosts' report.json)" = '[{"host":"node7","runs":2,"clock_ahead_us":0},{"host":"node8","runs":2,"clock_ahead_us":0}]' ]
	# Runs that are no ranks are not compared.
	run "$spill" report "$data/run.jsonl" ranks/a.jsonl
	has_not "longest run"
	[ "$(json "$data/run.jsonl" ranks/a.jsonl | jq -c .ranks)" = null ]
}

# Of two ranks on node7 at 03:50:51 and two on node8 at the time: seconds that node8's clock is taken to be ahead, and the begins.
clock() {
	mkdir -p ranks
	rank "${LOG:-$data/moves.jsonl}" 0 node7 03:50:51.000000 "${JOB-17}" >ranks/a.jsonl
	rank "${LOG:-$data/moves.jsonl}" 1 node7 03:50:52.000000 "${JOB-17}" >ranks/b.jsonl
	rank "$data/moves.jsonl" 2 node8 "$1" "${JOB-17}" >ranks/c.jsonl
	rank "$data/moves.jsonl" "${RANK:-3}" node8 "$1" "${JOB-17}" >ranks/d.jsonl
	json ranks | jq -c '[.ranks.hosts[1].clock_ahead_us / 1e6, (.runs | sort_by(.log)[] | .begin)]'
}

@test "a host's clock is taken to be wrong only if its ranks began and ended as far apart" {
	[ "$(clock 04:50:52.500000)" = '[3600.5,0,1,1,1]' ]
	run "$spill" report ranks
	has_line "  clock          node8 is taken to be 3600.5 s ahead: its ranks began and ended that much later than the first rank"
	[ "$(clock 02:50:52.500000)" = '[-3599.5,0,1,1,1]' ]
	run "$spill" report ranks
	has_line "  clock          node8 is taken to be 3599.5 s behind: its ranks began and ended that much earlier than the first rank"
	# A launch may take so long.
	[ "$(clock 03:51:52.000000)" = '[0,0,1,61,61]' ]
	run "$spill" report ranks
	has_not "  clock  "
	# They came later, and ended with the others.
	sed 's/"t":4.0/"t":3604.0/' "$data/moves.jsonl" >long.jsonl
	[ "$(LOG=long.jsonl clock 04:50:52.500000)" = '[0,0,1,3601.5,3601.5]' ]
	# A job without a name, or a rank that is there twice: these may be launches one after the other.
	[ "$(JOB='' clock 04:50:52.500000)" = '[0,0,1,3601.5,3601.5]' ]
	[ "$(RANK=1 clock 04:50:52.500000)" = '[0,0,1,3601.5,3601.5]' ]
}

@test "a host's clock is judged by its median rank, whatever the order of its ranks" {
	local rank=1 at
	clock 04:50:52.500000
	# One of them ran for an hour longer.
	sed 's/"t":4.0/"t":3604.0/' "$data/moves.jsonl" >long.jsonl
	for at in 53 51 52; do
		rank=$((rank + 1))
		rank "$([ $rank -eq 3 ] && echo long.jsonl || echo "$data/moves.jsonl")" $rank node8 04:50:$at.000000 17 >ranks/${rank}.jsonl
	done
	rm ranks/c.jsonl ranks/d.jsonl
	[ "$(json ranks | jq -c '[.ranks.hosts[] | .clock_ahead_us / 1e6]')" = '[0,3600]' ]
}

@test "a folder of runs without ranks: by name, numbers as numbers" {
	mkdir runs
	for pid in 10 9 100; do cp "$data/moves.jsonl" "runs/p-$pid.jsonl"; done
	[ "$(json runs | jq -c '[.runs[].log]')" = '["runs/p-9.jsonl","runs/p-10.jsonl","runs/p-100.jsonl"]' ]
	[ "$(json runs/p-100.jsonl runs/p-9.jsonl | jq -c '[.runs[].log]')" = '["runs/p-100.jsonl","runs/p-9.jsonl"]' ]
}

@test "several runs in one file are never mixed" {
	{ head -3 "$data/run.jsonl"; cat "$data/moves.jsonl"; head -2 "$data/killed.jsonl"; printf '{"v":1,"kind":"fr'; cat "$data/moves.jsonl"; } >runs.jsonl
	json runs.jsonl >report.json
	[ "$(jq -c '[.runs[] | [.line, .totals.allocs, .totals.live.device_bytes, .exited, .cut]]' report.json)" = \
		'[[1,2,6442450944,false,false],[4,1,7555858432,true,false],[9,1,1073741824,false,true],[11,1,7555858432,true,false]]' ]
}

@test "what log.max left out is in the totals" {
	run "$spill" report "$data/dropped.jsonl"
	ends_with 0
	has_line "  each of these figures equals the program's own count (exit line)"
	has_line "  log.max left out 3 allocations and 2 frees: the totals have them, devices and tables do not"
	has_line "  allocations 4, frees 2, placed off the card 1, refused as out of memory 0"
	has_line "  moved to the host 2 times (300 bytes), moved back 0 times (0 bytes)"
	has_line "  to fit         a smaller batch, model or -ngl, or a shorter context length; this log does not show how much"
	# What was wanted is at least what is told; a limit of as much need not do.
	sed '/"kind":"exit"/i{"v":1,"kind":"drop","t":14.5,"alloc":{"count":1,"device_bytes":1,"host_bytes":0,"managed_bytes":0},"peak":{"device_bytes":1,"host_bytes":0,"managed_bytes":0}}' "$data/run.jsonl" >more.jsonl
	run "$spill" report more.jsonl
	has_line "  to fit         a smaller batch, model or -ngl, or a shorter context length, so that no host memory is needed: at least 4.04 GiB less on device 0 (8.04 GiB needed - 4.00 GiB room = 4.04 GiB)"
}

@test "what a log lacks is told: lines of earlier files, lines that were lost, allocations of frees" {
	grep -v '"seq":2,"tid":4711,"dev":0,"api":"cuMemAlloc_v2"' "$data/run.jsonl" >unknown.jsonl
	run "$spill" report unknown.jsonl
	ends_with 1
	has_line "  the log has 1 free of memory whose allocation it does not have"
	has "THE SUMS OF THE LINES DIFFER"
	has_not "lines were lost"
	sed 's/"code":"evil"/"code":"log-lost"/' unknown.jsonl >lost.jsonl
	run "$spill" report lost.jsonl
	has_line "    lines were lost: see the log-lost notes"
	sed '1s/"pid"/"continues":7,"pid"/' unknown.jsonl >later.jsonl
	run "$spill" report later.jsonl
	has "  7 LINES OF THIS RUN ARE MISSING: its log was rotated, removed or truncated while it ran. The figures"
	has_not "THE SUMS OF THE LINES DIFFER"
	has_not "equals the program's own count"
	run "$spill" log later.jsonl
	has ", goes on behind 7 lines in other files"
}

@test "events that are out of order" {
	local number
	{
		head -1 "$data/run.jsonl"
		for number in 1 2 2 4; do
			printf '{"v":1,"kind":"alloc","t":%d.0,"seq":%d,"order":%d,"tid":1,"dev":0,"api":"cudaMalloc","caller":"a.so+0x1","bytes":1024,"ptr":"0x%x000000","place":"device","device_bytes":1024,"reason":"fits","rule":"default","us":1}\n' $number $number $number $number
		done
	} >late.jsonl
	run "$spill" report late.jsonl
	has_line "  1 event came so late that peaks may be too low"
	[ "$(json late.jsonl | jq .runs[0].late_events)" -eq 1 ]
}

@test "how a program ended, by the word of its exit line" {
	local how
	for how in exit:itself abort:'abort()' assert:'a failed assertion'; do
		sed "s/\"how\":\"exit\"/\"how\":\"${how%%:*}\"/" "$data/run.jsonl" >how.jsonl
		run "$spill" report how.jsonl
		has "  ended          by ${how#*:} after 15.0 s"
	done
}

@test "frees of other libraries' destructors, behind the exit line" {
	{ cat "$data/run.jsonl"; echo '{"v":1,"kind":"free","t":16.000000,"seq":1,"tid":4711,"dev":0,"api":"cudaFree","caller":"x+0x1","bytes":1073741824,"ptr":"0x302000000","place":"device","reason":"free","us":1}'; } >after.jsonl
	run "$spill" report after.jsonl
	has_line "  each of these figures equals the program's own count (exit line)"
	has_line "  not counted: 1 event after the exit line"
	has_line "             1    1.00 GiB    1.00 GiB    1.00 GiB           -  device"
	[ "$(json after.jsonl | jq '.runs[0].after_exit')" -eq 1 ]
}

@test "log.level = spills: only what it tells is held against the exit line" {
	sed 's/{"name":"device.limit","value":"4GiB","source":"environment"}/{"name":"log.level","value":"spills","source":"environment"}/' "$data/run.jsonl" |
		grep -v '"seq":1,' >spills.jsonl
	run "$spill" report spills.jsonl
	has "  log.level is spills: the log lacks allocations that did not spill"
	# Without them it seems to fit.
	has_line "  to fit         a smaller batch, model or -ngl, or a shorter context length; this log does not show how much"
	has_not "THE SUMS"
	sed -i 's/"spills":1/"spills":2/' spills.jsonl
	run "$spill" report spills.jsonl
	has_line "    spills: lines 1, exit line 2"
	has_not "allocs: lines"
}

@test "what fits, against a margin, with the limit that holds for the device" {
	run "$spill" report "$data/fit.jsonl"
	ends_with 1
	has_line "  would it have fitted when it needed most, with 1.00 GiB of the card, or what others held, kept free?"
	# Devices and projections of scenario 5: 16304, 16368 and 32752 MiB for 39959, 42480 and 76200 MiB.
	has_line "  0          15.92 GiB   39.02 GiB   14.65 GiB   24.37 GiB           -           -           -    1.27 GiB  no: 24.10 GiB missing"
	has_line "  1          15.98 GiB   41.48 GiB   14.65 GiB   10.63 GiB    5.31 GiB   10.89 GiB           -    1.34 GiB  no: 26.50 GiB missing"
	has_line "  2          31.98 GiB   20.00 GiB   20.00 GiB           -           -           -           -   11.98 GiB  yes: 10.98 GiB left"
	[ "$(json "$data/fit.jsonl" | jq -c '[.runs[0].devices[] | .bytes - .fit.usable, .fit.usable - .fit.wanted - .fit.surplus]')" = '[1073741824,0,1073741824,0,1073741824,0]' ]
	run "$spill" report --margin 12GiB "$data/fit.jsonl"
	has ", with 12.00 GiB of the card, "
	has "no: 16.00 MiB missing"
	# Of margin and device.limit the one that leaves less.
	run "$spill" report "$data/run.jsonl"
	has_line "  0         140.40 GiB    8.04 GiB    6.00 GiB    2.04 GiB           -       512 B           -  134.40 GiB  no: 4.04 GiB missing (device.limit 4.00 GiB)"
	run "$spill" report --margin 138GiB "$data/run.jsonl"
	has "no: 5.64 GiB missing"
	has_not "(device.limit"
	[ "$(json --margin 200GiB "$data/run.jsonl" | jq '.runs[0].devices[0].fit.usable')" -eq 0 ]
	run "$spill" report --margin 200GiB "$data/fit.jsonl"
	has_line "  2          31.98 GiB   20.00 GiB   20.00 GiB           -           -           -           -   11.98 GiB  yes: 11.98 GiB left, without the margin, which takes the whole device"
	[ "$(json --margin 0 "$data/fit.jsonl" | jq .margin)" -eq 0 ]
}

@test "what would have avoided it: less on each device, another rule, less of others" {
	run "$spill" report "$data/fit.jsonl"
	has_line "  to fit         a smaller batch, model or -ngl, or a shorter context length, so that no host or managed memory is needed: 23.10 GiB less on device 0 (39.02 GiB needed - 15.92 GiB room = 23.10 GiB), 25.50 GiB less on device 1 (41.48 GiB needed - 15.98 GiB room = 25.50 GiB)"
	# The driver was full of what others held, or of contexts: alone it would have fitted.
	sed 's/"value":"4GiB"/"value":"none"/; /"kind":"oom"/d' "$data/run.jsonl" >others.jsonl
	run "$spill" report others.jsonl
	has "  to fit         less memory of other programs, contexts and libraries on the device"
	sed -i 's/"reason":"oom"/"reason":"rule"/' others.jsonl
	run "$spill" report others.jsonl
	has_line "  to fit         another place in the rules that set one"
	# The device had room, and its limit too: it was a rule's cap, or its refusal.
	sed 's/"reason":"rule"/"reason":"limit"/; s/"policy":\[/&{"name":"rule x","value":"size = 1GiB..; cap = 1GiB","source":"p.conf:1"},/' others.jsonl >cap.jsonl
	run "$spill" report cap.jsonl
	has_line "  to fit         a larger cap in the rules that have one"
	# Also where less was there than wanted: it would have met the cap all the same.
	sed 's/"bytes":[0-9]*}\]/"bytes":1073741824}]/' cap.jsonl >small.jsonl
	run "$spill" report small.jsonl
	has " - 1.00 GiB room = 7.04 GiB); a larger cap in the rules that have one"
	# Without such a rule it was what the driver takes on top, which device.limit counts and the log does not have.
	sed 's/; cap = 1GiB/; over = host/' cap.jsonl >blocks.jsonl
	run "$spill" report blocks.jsonl
	has_line "  to fit         a larger device.limit, which counts the driver's whole blocks; spill replay has the value"
	sed 's/"value":"4GiB"/"value":"none"/; /"kind":"alloc".*"seq":2/d; /"kind":"free"/d; s/"refused_by":"host.limit"/"refused_by":"rule.over"/' "$data/run.jsonl" >refused.jsonl
	run "$spill" report refused.jsonl
	has_line "  to fit         another setting in the rule that refused"
	sed -i 's/"refused_by":"rule.over"/"refused_by":"rule.cap"/' refused.jsonl
	run "$spill" report refused.jsonl
	has_line "  to fit         a larger cap in the rules that have one"
	sed -i 's/"refused_by":"rule.cap"/"refused_by":"device.limit"/' refused.jsonl
	run "$spill" report refused.jsonl
	has "  to fit         a larger device.limit, which counts"
	# An allocation that is on no device has no size to compare with.
	sed -i 's/"dev":0,"api":"cudaMalloc",/"api":"cudaMalloc",/' others.jsonl
	run "$spill" report others.jsonl
	has "  none  "
	has_line "  to fit         another place in the rules that set one"
	run "$spill" report "$data/moves.jsonl"
	has_not "to fit " # the size of its device is not known
	# It fitted, and moved no more than what is to stay free of the device.
	grep -q '"what":"demote".*"reason":"oom"' "$data/moves.jsonl"
	sed 's/"reason":"oom"/"reason":"reserve"/; s/"devices":\[\]/"devices":[{"dev":0,"name":"x","bytes":17179869184}]/;
		s/"policy":\[\]/"policy":[{"name":"device.reserve","value":"2GiB","source":"default"}]/' "$data/moves.jsonl" >reserve.jsonl
	run "$spill" report reserve.jsonl
	has_line "  to fit         a smaller device.reserve, or less memory of other programs, contexts and libraries on the device: the peak demand alone would have fitted, and the log does not tell what others held"
	sed 's/"reason":"reserve"/"reason":"limit"/; s/"name":"device.reserve","value":"2GiB"/"name":"rule x","value":"cap = 1GiB"/' reserve.jsonl >moved.jsonl
	run "$spill" report moved.jsonl
	has_line "  to fit         a larger cap in the rules that have one"
	sed -i s/2GiB/2047MiB/ reserve.jsonl
	run "$spill" report reserve.jsonl
	has_line "  to fit         less memory of other programs, contexts and libraries on the device: the peak demand alone would have fitted, and the log does not tell what others held"
	# It did not fit, and what is to stay free would not have either.
	sed -i 's/2047MiB/64MiB/; s/"bytes":17179869184}/"bytes":1073741824}/' reserve.jsonl
	run "$spill" report reserve.jsonl
	has_line "  to fit         a smaller batch, model or -ngl, or a shorter context length, so that no host memory is needed: 6.10 GiB less on device 0 (7.04 GiB needed + 64.00 MiB device.reserve - 1.00 GiB room = 6.10 GiB)"
}

@test "memory of the host that the program asked for is nothing that a device lacks" {
	sed 's/"place":"split","device_bytes":5368709120,"host_bytes":2187149312,"reason":"oom"/"place":"host","host_bytes":7555858432,"reason":"asked"/' "$data/killed.jsonl" >asked.jsonl
	[ "$(json asked.jsonl 2>/dev/null | jq -c '.runs[0].devices[0] | [.fit.wanted, .peak.host_bytes]')" = '[1073741824,7555858432]' ]
}

@test "the JSON is as its schema says" {
	python3 -c 'import jsonschema' 2>/dev/null || skip "no python3-jsonschema here"
	schema=$BATS_TEST_DIRNAME/../../docs/report.schema.json
	with_function >function.jsonl
	mkdir ranks
	rank "$data/moves.jsonl" 0 node7 03:50:51.123456 17 >ranks/a.jsonl
	rank "$data/run.jsonl" 1 node8 04:50:51.123456 17 >ranks/b.jsonl
	for log in "$data"/{run,moves,killed,dropped,fit}.jsonl function.jsonl ranks; do
		json "$log" >report.json 2>/dev/null || [ $? -eq 1 ]
		python3 -W ignore -c 'import json, sys, jsonschema
schema, report = (json.load(open(name)) for name in sys.argv[1:])
jsonschema.Draft202012Validator.check_schema(schema)
jsonschema.Draft202012Validator(schema).validate(report)' "$schema" report.json
	done
}

@test "each member of the JSON is described, and none that there is not" {
	local groups='"callers":[{"caller":"a","count":3,"device_bytes":1,"host_bytes":2,"managed_bytes":0}],"places":[{"place":"split","count":2,"device_bytes":1,"host_bytes":0,"managed_bytes":0}]'
	sed "/\"kind\":\"oom\"/s/\"refused_by\"/$groups,&/;s/\"frees\":1,/\"frees\":2,/" "$data/run.jsonl" >more.jsonl
	for log in more.jsonl "$data/moves.jsonl" "$data/fit.jsonl"; do
		json "$log" >>all.json || [ $? -eq 1 ]
	done
	with_function >function.jsonl
	json function.jsonl >>all.json || [ $? -eq 1 ]
	mkdir ranks
	rank "$data/moves.jsonl" 0 node7 03:50:51.123456 17 >ranks/a.jsonl
	rank "$data/run.jsonl" 1 node8 03:50:51.123456 17 >ranks/b.jsonl
	json ranks >>all.json || [ $? -eq 1 ]
	described report all.json
}

@test "texts of any length and bytes" {
	python3 - "$data/moves.jsonl" >long.jsonl <<-'END'
		import json, sys
		for line in open(sys.argv[1]):
		    record = json.loads(line)
		    for name in ("program", "host", "version", "caller", "api", "reason"):
		        if name in record:
		            record[name] = ("\x01" if name in ("program", "host") else "\x7f\u00e4") * 10000
		    print(json.dumps(record))
	END
	[ "$(json long.jsonl | jq -c '.runs[0] | [.program, .host, .by_caller[0].name] | map(utf8bytelength)')" = '[8192,8192,1024]' ]
	run "$spill" report long.jsonl
	ends_with 0
}

@test "notes; text of a log cannot steer the terminal" {
	run "$spill" report "$data/run.jsonl"
	has "evil: a ?[31mred?[0m note"
	has_not $'\x1b'
}

@test "notes: the first twenty, and how many more there are" {
	for count in 20 21 23; do
		{
			head -1 "$data/run.jsonl"
			for number in $(seq $count); do printf '{"v":1,"kind":"note","t":%d.0,"tid":1,"code":"c%d","text":"note %d"}\n' $number $number $number; done
		} >notes.jsonl
		run "$spill" report notes.jsonl
		has_line "  notes: $count"
		[ "$(grep -c '^  at .* note [0-9]*$' <<<"$output")" -eq 20 ]
		has_line "  at 20.000000 s: c20: note 20"
		[ "$(sed -n 's/^  \([0-9]*\) more$/\1/p' <<<"$output")" = "$([ $count -eq 20 ] || echo $((count - 20)))" ]
	done
}

@test "a broken line is a finding, later kinds and versions are skipped" {
	{ head -2 "$data/moves.jsonl"; echo '{"v":2,"kind":"alloc","t":1.5}'; echo '{"v":1,"kind":'; tail -3 "$data/moves.jsonl"; } >broken.jsonl
	run "$spill" report broken.jsonl
	ends_with 1
	has "broken.jsonl:4: not a record"
	has_line "  not counted: 1 line that cannot be read as a record"
	has_line "  not counted: 1 record of a later version of spill"
	has "equals the program's own count"
	for i in $(seq 12); do echo bad; done >>broken.jsonl
	run "$spill" report broken.jsonl
	has "and 8 more lines of this kind"
	[ "$(grep -c 'not a record' <<<"$output")" -eq 5 ]
}

@test "a file without a start line" {
	tail -n +2 "$data/moves.jsonl" >tail.jsonl
	run "$spill" report tail.jsonl
	ends_with 0
	has_line "  the log has no start line: the program is not known"
	has "equals the program's own count"
}

@test "devices that there cannot be are one, so that a hostile log is no work" {
	for device in 0 31 32 65536 2147483647; do
		printf '{"v":1,"kind":"alloc","t":1,"seq":%s,"tid":1,"dev":%s,"api":"cudaMalloc","caller":"c","bytes":4096,"ptr":"0x1","place":"device","device_bytes":4096,"reason":"fits","rule":"default","us":1}\n' \
			$((device + 1)) $device
	done >devices.jsonl
	[ "$(json devices.jsonl | python3 -c 'import json, sys; print([(one["dev"], one["peak"]["device_bytes"]) for one in json.load(sys.stdin)["runs"][0]["devices"]])')" = "[(0, 4096), (31, 4096), (None, 12288)]" ]
	# Those of a start line are none.
	printf '{"v":1,"kind":"start","t":0,"pid":1,"devices":[{"dev":0,"name":"a","bytes":1},{"dev":32,"name":"b","bytes":1},{"dev":2147483647,"name":"c","bytes":1}]}\n' >start.jsonl
	[ "$(json start.jsonl | python3 -c 'import json, sys; print([one["name"] for one in json.load(sys.stdin)["runs"][0]["devices"]])')" = "['a']" ]
}

@test "without a log: the newest in the default folder; of a process: its own" {
	run "$spill" report
	ends_with 1
	[ "$output" = "spill report: $HOME/.local/state/spill: no log is there: name a log, a folder or a process" ]
	mkdir -p .local/state/spill
	cp "$data/moves.jsonl" .local/state/spill/moves-1.jsonl
	cp "$data/run.jsonl" .local/state/spill/llama-server-4711.jsonl
	touch -d 2001-01-01 .local/state/spill/llama-server-4711.jsonl
	run "$spill" report
	has "  log            $HOME/.local/state/spill/moves-1.jsonl"
	has_not "llama-server-4711.jsonl"
	run "$spill" report 4711
	ends_with 1
	has "  log            $HOME/.local/state/spill/llama-server-4711.jsonl"
	[ "$(json 4711 .local/state/spill/moves-1.jsonl | jq '.runs | length')" = 2 ]
	run "$spill" report 4712
	ends_with 1
	has "spill report: 4712: no such file, and no process with that number"
}

@test "a folder of many logs: the newest is found without opening the others, and each is read once" {
	folder=$HOME/.local/state/spill
	mkdir -p "$folder"
	for i in $(seq 100 399); do
		cp "$data/moves.jsonl" "$folder/moves-$i.jsonl"
		touch -d "@$((1000000000 + i))" "$folder/moves-$i.jsonl"
	done
	opened() { python3 "$BATS_TEST_DIRNAME/opened.py" "$folder" "$@"; }
	# One to see that it is a log, one to read it.
	[ "$(opened "$spill" report)" -le 2 ]
	[ "$(opened "$spill" log --last)" -le 2 ]
	[ "$(opened "$spill" log)" -le 3 ]
	[ "$(opened "$spill" report --json "$folder")" = 300 ]
	[ "$(opened "$spill" report --summary "$folder")" = 300 ]
	# A file that is no log, and the newest: the next one is taken.
	echo "no log" >"$folder/other-1.jsonl"
	[ "$(opened "$spill" report)" -le 3 ]
	run "$spill" report
	has "  log            $folder/moves-399.jsonl"
}

@test "a line for each run, and nothing else" {
	run "$spill" report --summary "$data/run.jsonl"
	ends_with 1
	[ "${#lines[@]}" = 3 ]
	[ "${lines[0]}" = "1 run" ]
	[[ ${lines[2]} == "  -     exit "*" $data/run.jsonl" ]]
	run "$spill" report --summary "$data/run.jsonl" "$data/moves.jsonl"
	[ "${#lines[@]}" = 5 ]
	[[ ${lines[4]} == "  sum "* ]]
	run "$spill" report --summary --json "$data/run.jsonl"
	ends_with 2
	has "--summary is for people"
}

@test "functions: of a caller whose file has the log's build id, told the same everywhere" {
	elf lib.so build_id=00112233445566778899 "functions=before:0x1000:0xa00,$alloc:0x1a00:0x2b"
	with_file "$PWD/lib.so" 00112233445566778899 >run.jsonl
	run "$spill" report run.jsonl
	has_line "  asked by       libggml-cuda.so+0x1a2b (ggml_cuda_pool_vmm::alloc) 2.04 GiB"
	has_line "             2    8.04 GiB    8.04 GiB    1.00 GiB    2.04 GiB  libggml-cuda.so+0x1a2b (ggml_cuda_pool_vmm::alloc)"
	has_line "      1.00 GiB  #1       device    cudaMalloc  libggml-cuda.so+0x1a2b (ggml_cuda_pool_vmm::alloc)  at 0.001 s, held at the end"
	has_line "      7.04 GiB  #2  split  cuMemAlloc_v2  libggml-cuda.so+0x1a2b (ggml_cuda_pool_vmm::alloc)"
	has "512 B asked by prog+0x1 with cudaMalloc"
	[ "$(functions run.jsonl)" = '[{"caller":"libggml-cuda.so+0x1a2b","function":"ggml_cuda_pool_vmm::alloc"}]' ]
	run "$spill" log run.jsonl
	has_line "    0.000000  file  libggml-cuda.so is $PWD/lib.so, build id 00112233445566778899"
	has "cuMemAlloc_v2  libggml-cuda.so+0x1a2b (ggml_cuda_pool_vmm::alloc)  oom"
	run "$spill" log --kind oom run.jsonl
	has "#2 libggml-cuda.so+0x1a2b (ggml_cuda_pool_vmm::alloc)"
}

# Behind those that allocated, in the order of their first refusal.
@test "functions: of callers that only were refused, each once" {
	elf lib.so build_id=0011 "functions=$alloc:0x1a00:0x2b"
	with_file "$PWD/lib.so" 0011 | sed '/"kind":"oom"/{s/prog+0x1/libggml-cuda.so+0x1a05/;p;p;s/0x1a05/0x1a04/;p;s/0x1a04/0x1a2b/;p;s/,"caller":"[^"]*","bytes"/,"bytes"/}' >run.jsonl
	[ "$(functions run.jsonl | jq -c '[.[].caller]')" = '["libggml-cuda.so+0x1a2b","libggml-cuda.so+0x1a05","libggml-cuda.so+0x1a04"]' ]
	[ "$(functions run.jsonl | jq -c '[.[].function] | unique')" = '["ggml_cuda_pool_vmm::alloc"]' ]
}

@test "functions: none from a file that may be another one" {
	elf lib.so build_id=0011 "functions=$alloc:0x1a00:0x40"
	elf plain.so "functions=$alloc:0x1a00:0x40"
	[ "$(with_file "$PWD/lib.so" 0011 | sed '1s/"host":"[^"]*"/"host":"elsewhere"/;1s/"time":"20/"time":"19/' >a && functions a | jq length)" = 1 ]
	[ "$(with_file "$PWD/lib.so" 0012 >a && functions a)" = '[]' ]
	[ "$(with_file "$PWD/lib.so" >a && functions a)" = '[]' ]
	[ "$(with_file "$PWD/plain.so" 0011 >a && functions a)" = '[]' ]
	[ "$(with_file "$PWD/none.so" 0011 >a && functions a)" = '[]' ]
	[ "$(with_file "lib.so" 0011 >a && functions a)" = '[]' ]
	[ "$(with_file "$PWD/plain.so" >a && functions a | jq length)" = 1 ]
	[ "$(with_file "$PWD/plain.so" | sed '1s/"host":"[^"]*"/"host":"elsewhere"/' >a && functions a)" = '[]' ]
	[ "$(with_file "$PWD/plain.so" | sed '1s/"boot":"[^"]*"/"boot":"before"/' >a && functions a)" = '[]' ]
	[ "$(with_file "$PWD/plain.so" | sed '1s/"time":"20/"time":"19/' >a && functions a)" = '[]' ]
	# The time of its content may be set back, as by a package manager.
	touch -d 1990-01-01 plain.so
	[ "$(functions a)" = '[]' ]
	# Two files of one name.
	with_file "$PWD/lib.so" 0011 | sed '2{p;s/0011/0012/}' >a
	[ "$(functions a)" = '[]' ]
	with_file "$PWD/lib.so" 0011 | sed '2p' >a
	[ "$(functions a | jq length)" = 1 ]
}

@test "functions: a page has as many as rows, and callers without one do not count" {
	elf lib.so build_id=0011 "functions=$alloc:0x1a00:0x40"
	with_file "$PWD/lib.so" 0011 >all.jsonl
	{
		sed -n 1,3p all.jsonl
		for number in {100..299}; do
			sed -n "3{s/\"seq\":1/\"seq\":$number/;s/libggml-cuda.so+0x1a2b/other.so+0x$number/;s/1073741824/2147483648/g;p}" all.jsonl
		done
	} >many.jsonl
	"$spill" report --html page.html many.jsonl || [ $? -eq 1 ]
	[ "$(page_data <page.html | jq -c '.runs[0] | [.by_caller, .functions | length]')" = '[200,1]' ]
}

@test "functions: the program's own file is known from the start line of older logs" {
	elf prog "functions=main:0x1000:0x200"
	with_file /none | sed "2d;1s|llama-server|prog|;1s|/usr/bin/llama-server|$PWD/prog|;s/prog+0x1\"/prog+0x1010\"/" >a
	[ "$(functions a)" = '[{"caller":"prog+0x1010","function":"main"}]' ]
	sed '1s/"time":"20/"time":"19/' a >b
	[ "$(functions b)" = '[]' ]
}

@test "functions: of a stripped file those that it exports; an address between functions has none" {
	elf lib.so build_id=0011 table=dynsym "functions=other:0x1000:0x100,$alloc:0x1a00:0x40"
	[ "$(with_file "$PWD/lib.so" 0011 >a && functions a | jq -r '.[].function')" = ggml_cuda_pool_vmm::alloc ]
	elf lib.so build_id=0011 table=dynsym "functions=other:0x1000:0x100,$alloc:0x1a00:0x2a,next:0x1a2b:0x10,empty:0x1a28:0"
	[ "$(functions a)" = '[]' ]
	elf lib.so build_id=0011 table=none "functions=$alloc:0x1a00:0x40"
	[ "$(functions a)" = '[]' ]
}

@test "functions: damaged and hostile files give no function or plain text, and never end the report" {
	elf lib.so build_id=0011 "functions=evil\\x1b[31m\\x0a<script>\\xff:0x1a00:0x40"
	with_file "$PWD/lib.so" 0011 >a
	run "$spill" report a
	ends_with 1
	has_not $'\x1b'
	has "libggml-cuda.so+0x1a2b (evil?[31m?<script>?)"
	functions a | jq -e '.[0].function | test("evil")'
	"$spill" report --html page.html a || [ $? -eq 1 ]
	lacks '\[31m.*<script>' <page.html
	size=$(stat -c %s lib.so)
	for cut in $(seq 1 29 "$size"); do
		elf lib.so build_id=0011 cut="$cut" "functions=$alloc:0x1a00:0x40"
		run "$spill" report a
		ends_with 1
	done
	elf lib.so build_id=0011 "functions=$(printf 'x%.0s' {1..400}):0x1a00:0x40"
	[ "$(functions a | jq '.[0].function | length < 130')" = true ]
	mkfifo pipe.so
	with_file "$PWD/pipe.so" 0011 >a
	[ "$(functions a)" = '[]' ]
}

@test "wrong use" {
	run "$spill" report --jsn x
	ends_with 2
	has "unknown option '--jsn'; the nearest is '--json'"
	run "$spill" report --margin
	ends_with 2
	has "needs a value"
	run "$spill" report --margin 1GB "$data/run.jsonl"
	ends_with 2
	has "bad --margin '1GB'"
	run "$spill" report nothing.jsonl
	ends_with 1
	has "nothing.jsonl: No such file"
	mkdir empty
	run "$spill" report empty
	ends_with 1
	has "no *.jsonl in it"
	: >empty.jsonl
	run "$spill" report empty.jsonl
	ends_with 1
	has "no records"
	printf '\177ELF\2\1' >junk.jsonl
	run "$spill" report junk.jsonl
	ends_with 1
	has "no records"
	json empty.jsonl 2>/dev/null | jq -e '.runs == []' || [ "${PIPESTATUS[0]}" -eq 1 ]
	run "$spill" report --help
	ends_with 0
	has "usage: spill report"
}

@test "logs of all versions that there were: tests/cli/data/kept is added to, and never made anew" {
	sums='[.totals.allocs, .totals.frees, .totals.spills, .totals.ooms, .totals.demotions, .totals.peak.device_bytes, .totals.peak.host_bytes]'
	of() {
		json "$data/kept/$1.jsonl" >report.json || [ $? -eq 1 ]
		[ "$(jq -c ".runs[] | $sums" report.json)" = "$2" ]
		jq -e '.runs | length == 1 and all(.differences == [] and .bad_lines == 0 and .later_records == 0 and .exited)' report.json
		"$spill" log "$data/kept/$1.jsonl" >log.txt
		[ "$(grep -c '^ *[0-9]*\.[0-9]' log.txt)" -ge "$3" ]
	}
	of first '[4,4,1,2,0,12582912,4194304]' 12
	of 0.1.0 '[26,26,0,1,15,14680064,6291472]' 60
	of sums '[6002,5996,0,1,0,9605032,0]' 7
	of files '[9,9,0,1,4,25165824,18874384]' 25
}

# docs/examples: a real GPU's logs, and what is said there of them.
@test "the logs of the example give the reports that lie beside them, and replay foretells the second run's peaks" {
	cd "$BATS_TEST_DIRNAME/../../docs/examples"
	for run in first second; do
		"$spill" report $run.jsonl | diff $run.txt - || { echo "stale: spill report $run.jsonl >docs/examples/$run.txt"; return 1; }
	done
	json() { python3 -c 'import json, sys; print(eval(sys.argv[1], json.load(sys.stdin)))' "$1"; }
	foretold=$("$spill" replay first.jsonl --policy tables.conf --other 131530MiB --json | json 'runs[0]["peak"]')
	[ "$foretold" = "$("$spill" report --json second.jsonl | json 'runs[0]["totals"]["peak"]')" ]
	"$spill" report --html - first.jsonl second.jsonl | grep -q '<html'
}
