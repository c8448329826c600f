load help.bash
load logs.bash

policy() { printf '%b' "$1" >p.conf; }
json() { "$spill" replay --json -p p.conf "$@" | jq -c "$query"; }

@test "who asked has the name that spill report has for it: the requester, the function, or not known" {
	run_of alloc:1:2048 alloc:2:1024 alloc:3:512 oom:8192 >named.jsonl
	sed -i '/"seq":1,/s/"bytes"/"requester":"model.py:9 Cache.grow","bytes"/; /"seq":2,/s/"caller":"[^"]*",//; /"kind":"oom"/s/"bytes"/"requester":"model.py:7 forward","bytes"/' named.jsonl
	by_caller() { sed -nE "/$1  by caller/,/^\$/s/^ +[0-9]+ .*(B|-)  (.*)\$/\2/p"; }
	run "$spill" replay --profile none --vram 4GiB --other 0 --list named.jsonl
	[ "$("$spill" report named.jsonl | by_caller spilled)" = "model.py:9 Cache.grow
not known
libggml-cuda.so+0x1" ]
	[ "$(by_caller spilled <<<"$output")" = "model.py:7 forward
model.py:9 Cache.grow
not known
libggml-cuda.so+0x1" ]
	[ "$(by_caller 'off device' <<<"$output")" = "model.py:7 forward" ]
	has "out of memory -> split, default, model.py:7 forward"
	run "$spill" replay --profile none --vram 2500MiB --other 0 --without vmm,managed,host named.jsonl
	has "1.00 GiB asked by not known with cudaMalloc"
	[ "$("$spill" replay --profile none --vram 1GiB --other 0 --without vmm,managed,host --list --json named.jsonl | jq -r '.runs[0] | .first.caller, .elsewhere.list[0].caller, .elsewhere.by_caller[0].name')" = "model.py:9 Cache.grow
model.py:9 Cache.grow
model.py:9 Cache.grow" ]
}

@test "memory that the program placed itself has no rule, as in spill report" {
	run_of alloc:1:64 alloc:2:32 >asked.jsonl
	sed -i '/"seq":2,/s/"place":"device","device_bytes"/"place":"host","host_bytes"/; /"seq":2,/s/"reason":"fits","rule":"default"/"reason":"asked"/' asked.jsonl
	for command in report "replay --profile none"; do
		run "$spill" $command asked.jsonl
		[ "$(sed -n '/by rule/,/^$/p' <<<"$output" | awk '{ print $NF }' | xargs)" = "rule default itself" ]
	done
}

@test "what fits is said first, and that nothing would be elsewhere" {
	policy '[device]\nreserve = 0\n'
	run_of alloc:1:1024 alloc:2:2048 free:1 free:2 >a.jsonl
	run "$spill" replay a.jsonl -p p.conf
	ends_with 0
	[ "${lines[0]}" = "would run: nothing would be out of memory; 0 of 2 allocations would be elsewhere than they were" ]
	[ "${lines[1]}" = "  run            llama-server (pid 4711) on node7, 2026-11-21T03:50:51.123456Z; a.jsonl" ]
	[ "${lines[2]}" = "  under          policy p.conf" ]
	[ "${lines[3]}" = "  on             device 0 of 16.00 GiB, of which 0 B is not this program's (not in the log: counted as 0; --other SIZE)" ]
	has "  device 0: nothing is elsewhere for lack of room if device.limit is at least 3221225472 (3.00 GiB), on a card of at least 3.00 GiB; nothing is out of memory whatever it is, because all memory can be elsewhere"
	has "this predicts where memory would be, not the speed"
	# A card has what is kept free besides, if it can be: on a smaller one something would move for it.
	run "$spill" replay a.jsonl --profile none
	has "device.limit is at least 3221225472 (3.00 GiB), on a card of at least 3.06 GiB"
	run "$spill" replay a.jsonl --profile none --vram 3136MiB
	has "; 0 of 2 allocations would be elsewhere"
	run "$spill" replay a.jsonl --profile none --vram 3096MiB
	has_not "; 0 of 2 allocations would be elsewhere"
	run "$spill" replay a.jsonl --profile none --without move
	has "on a card of at least 3.00 GiB"
}

@test "nothing is kept free for code where the device's memory is the host's" {
	run_of alloc:1:16340 alloc:2:100 alloc:3:16 >a.jsonl
	query='.runs[0] | .elsewhere.allocs'
	for memory in discrete:2 integrated:1; do
		policy "[device]\nmemory = ${memory%:*}\n[movable]\nenable = off\n"
		[ "$(json a.jsonl)" = "${memory#*:}" ] || { echo "$memory: $(json a.jsonl)"; return 1; }
	done
	# The kind that the log tells.
	sed 's/"bytes":17179869184}/"bytes":17179869184,"memory":"integrated"}/' a.jsonl >b.jsonl
	policy '[movable]\nenable = off\n'
	[ "$(json a.jsonl)" = 2 ]
	[ "$(json b.jsonl)" = 1 ]
}

@test "sums of what has no line: the same memory at the same time as with a line for each" {
	# A line tells the memory of its own device only, so the peak of both together may be another one.
	# What others held is known to a granule only, because a sum does not tell which of its small requests were alive.
	query='.runs[0] | [.judged, .spills, .refused, (.elsewhere | [.allocs, .bytes, .ways]), (.devices | map([.dev, .peak, (.fit | del(.others, .usable, .free, .surplus))]))]'
	for seed in 1 2 3; do
		for how in each all threads; do
			python3 "$BATS_TEST_DIRNAME/report_oracle.py" make "$seed" 2000 $how >$how.jsonl
			"$spill" replay --json --profile none --vram 64GiB $how.jsonl | jq "$query" >$how.json
		done
		jq -e '.[0] and .[3][0] > 0 and (.[4] | length) == 2' each.json
		diff each.json all.json
		diff each.json threads.json
	done
}

@test "a call site of sums is one allocation that changes, and no row of growing requests" {
	policy '[device]\nreserve = 0\n[rule growing]\ngrowth = yes\nplace = host\n'
	sums_of 100:100 300:400 700:900 1500:2000 100:1500 >a.jsonl
	query='.runs[0] | [.judged, .peak.device_bytes, .elsewhere.allocs]'
	[ "$(json a.jsonl)" = "[true,$((2000 << 20)),0]" ]
	query='.runs[0] | [.refused > 0, .spills > 0]'
	[ "$(json a.jsonl --vram 1500MiB)" = "[false,true]" ]
	[ "$(json a.jsonl --vram 2000MiB)" = "[false,false]" ]
}

@test "a smaller card: what would be elsewhere, from where to where, by caller and by rule" {
	policy '[device]\nreserve = 0\n[movable]\nenable = off\n[rule kv]\ncaller = libkv*\nover = host\n'
	run_of alloc:1:3072 alloc:2:2048:libkv.so+0x7 alloc:3:2048 >a.jsonl
	run "$spill" replay a.jsonl -p p.conf --vram 4GiB --list
	ends_with 0
	[ "${lines[0]}" = "would run: nothing would be out of memory; 2 of 3 allocations would be elsewhere than they were" ]
	has_line "  on             device 0 of 4.00 GiB (--vram), of which 0 B is not this program's (not in the log: counted as 0; --other SIZE)"
	has_line "             1    2.00 GiB  device -> split"
	has_line "             1    2.00 GiB  device -> host"
	has_line "             1    2.00 GiB    2.00 GiB  libkv.so+0x7"
	has_line "             1    2.00 GiB    1.00 GiB  libggml-cuda.so+0x1"
	has_line "             1    2.00 GiB    2.00 GiB  kv"
	has_line "             2    2.00 GiB    2.00 GiB  device -> host, kv, libkv.so+0x7"
	has_line "  0           4.00 GiB    4.00 GiB    3.00 GiB             -    4.00 GiB    3.00 GiB            -  GPU"
	has_line "  0           4.00 GiB    7.00 GiB    4.00 GiB    3.00 GiB           -           -           -           -  no: 4.00 GiB missing"
	query='.runs[0] | [.fits, .elsewhere.allocs, .elsewhere.bytes, .spilled.host_bytes, .peak.device_bytes, (.list // "none")]'
	[ "$(json a.jsonl --vram 4GiB)" = '[true,2,4294967296,3221225472,4294967296,"none"]' ]
}

@test "of each caller, how much it would ask for" {
	policy '[device]\nreserve = 0\n'
	run_of alloc:1:1024 alloc:2:2048:libkv.so+0x7 alloc:3:2048:libkv.so+0x7 >a.jsonl
	run "$spill" replay a.jsonl -p p.conf
	table=$(sed -n '/ spilled  by caller$/,/^$/p' <<<"$output")
	[ "$(awk 'NF { print $1, $NF }' <<<"$table" | tail -n +2)" = "$(printf '2 libkv.so+0x7\n1 libggml-cuda.so+0x1')" ]
}

@test "ten callers are listed, and how many more there are" {
	policy '[device]\nreserve = 0\n'
	for more in 0 1 3; do
		run_of $(for number in $(seq $((10 + more))); do echo "alloc:$number:$((1024 + number)):many.so+0x$number"; done) >a.jsonl
		run "$spill" replay a.jsonl -p p.conf --vram 512MiB
		table=$(sed -n '/ off device  by caller$/,/^$/p' <<<"$output")
		[ "$(grep -c 'many.so' <<<"$table")" = 10 ]
		[ "$(sed -nE 's/^ +([0-9]+) more, in --json$/\1/p' <<<"$table")" = "${more#0}" ]
	done
}

@test "HIP: what does not fit is split from ROCm 7.2 on, and nothing moves" {
	policy '[device]\nreserve = 0\n'
	query='.runs[0].elsewhere.ways | map([.from, .to, .allocs])'
	for driver in 60443482 70199999 70200000 70226015; do
		run_of alloc:1:3072 alloc:2:2048 | sed "s/\"cuda\",\"driver\":13000/\"hip\",\"driver\":$driver/" >hip$driver.jsonl
	done
	[ "$(json hip60443482.jsonl --vram 4GiB)" = '[["device","managed",1]]' ]
	[ "$(json hip70199999.jsonl --vram 4GiB)" = '[["device","managed",1]]' ]
	[ "$(json hip70200000.jsonl --vram 4GiB)" = '[["device","split",1]]' ]
	[ "$(json hip70226015.jsonl --vram 4GiB)" = '[["device","split",1]]' ]
}

@test "a handle is on the host as a whole or nowhere, and an array on the device only" {
	policy '[device]\nreserve = 0\n[movable]\nenable = off\n'
	run_of alloc:1:12288 alloc:2:8192:libx.so+0x1:cuMemCreate >handle.jsonl
	run "$spill" replay handle.jsonl -p p.conf --list
	ends_with 0
	has_line "             2    8.00 GiB    8.00 GiB  device -> host, default, libx.so+0x1"
	# Its host memory is made as that of a split, so a device without that has none.
	run "$spill" replay handle.jsonl -p p.conf --without host --list
	ends_with 0
	has_line "             2    8.00 GiB    8.00 GiB  device -> host, default, libx.so+0x1"
	run "$spill" replay handle.jsonl -p p.conf --without host,vmm
	ends_with 1
	run_of alloc:1:12288 alloc:2:8192:libx.so+0x1:cuArrayCreate_v2 >array.jsonl
	run "$spill" replay array.jsonl -p p.conf
	ends_with 1
	has "  the first      at 2.000000 s: 8.00 GiB asked by libx.so+0x1 with cuArrayCreate_v2, device 0; refused by driver, rule default; held then: 12.00 GiB device"
	has_line "  device 0: nothing is elsewhere for lack of room if device.limit is at least 21474836480 (20.00 GiB), on a card of at least 20.00 GiB; nothing is out of memory if it is at least 21474836480 (20.00 GiB)"
	policy '[device]\nreserve = 0\n[movable]\nenable = off\n[oom]\nchain = managed\n'
	run "$spill" replay handle.jsonl -p p.conf
	ends_with 1
	has "asked by libx.so+0x1 with cuMemCreate, device 0; refused by not for physical memory, rule default"
}

@test "older memory makes way where it can" {
	policy '[device]\nreserve = 0\n'
	run_of alloc:1:3072 alloc:2:2048 >a.jsonl
	run "$spill" replay a.jsonl -p p.conf --vram 4GiB
	has_line "             1    3.00 GiB  device -> moved out"
	has_line "  moved to host  1.00 GiB in 1 move: 1.00 GiB because the card was full"
	# The most of it that was away.
	run_of alloc:1:3072 alloc:2:2048 alloc:3:512 free:3 free:2 >most.jsonl
	run "$spill" replay most.jsonl -p p.conf --vram 4GiB --list
	has_line "             1    3.00 GiB    1.50 GiB  device -> moved out, default, libggml-cuda.so+0x1"
	run "$spill" replay a.jsonl -p p.conf --vram 4GiB --without vmm
	has_line "             1    2.00 GiB  device -> managed"
	run "$spill" replay a.jsonl -p p.conf --vram 4GiB --without vmm,managed
	has_line "             1    2.00 GiB  device -> host"
}

@test "what does not fit: the first out of memory, by whom and why" {
	policy '[oom]\nchain =\n[device]\nreserve = 0\n'
	run_of alloc:1:3072 alloc:2:512 alloc:3:2048:libkv.so+0x7:cuMemAlloc_v2 alloc:4:2048 >a.jsonl
	run "$spill" replay a.jsonl -p p.conf --vram 4GiB
	ends_with 1
	[ "${lines[0]}" = "would run out of memory: 2 of 4 requests would be refused (0 of them also in the recording); 2 would be elsewhere than they were" ]
	has_line "  the first      at 3.000000 s: 2.00 GiB asked by libkv.so+0x7 with cuMemAlloc_v2, device 0; refused by driver, rule default; held then: 3.50 GiB device"
	has "the program's reaction is not known"
	has_line "             2    4.00 GiB  device -> out of memory"
	has "device.limit is at least 8053063680 (7.50 GiB), on a card of at least 7.50 GiB; nothing is out of memory if it is at least 8053063680 (7.50 GiB)"
	query='.runs[0] | [.fits, .refused, .newly_refused, .first.bytes, .first.caller, .first.refused_by]'
	[ "$(json a.jsonl --vram 4GiB)" = '[false,2,2,2147483648,"libkv.so+0x7","driver"]' ]
}

@test "an out of memory of the recording is asked for again" {
	policy '[device]\nreserve = 0\n'
	FREE=$((1 << 30)) run_of alloc:1:8192 oom:8192 >a.jsonl
	run "$spill" replay a.jsonl -p p.conf
	ends_with 0
	has_line "  on             device 0 of 16.00 GiB, of which 7.00 GiB is not this program's (as the log tells)"
	has_line "             1    8.00 GiB  out of memory -> device"
	has "of 1 out of memory in the recording, 1 would be served; the program's further requests are not known"
	run "$spill" replay a.jsonl -p p.conf --other 0
	has_line "  on             device 0 of 16.00 GiB, of which 0 B is not this program's (--other)"
	has_not "moved out"
	# What others have is known to the granule: small allocations share chunks of 2 MiB.
	FREE=$((1 << 30)) run_of alloc:1:8192 alloc:2:1 alloc:3:1 alloc:4:1 oom:8192 >small.jsonl
	query='.runs[0].devices | map(.other)'
	[ "$(json small.jsonl)" = "[$(((7 << 30) - (4 << 20)))]" ]
	# One that the host refused is refused again where the host is not known.
	run_of alloc:1:8192 oom:9216:host.limit >b.jsonl
	run "$spill" replay b.jsonl -p p.conf
	ends_with 1
	has "requests that were refused for lack of host memory are refused again"
	# What the device refused is not put down to the host.
	run_of alloc:1:8192 oom:9216:device.limit >d.jsonl
	printf '[oom]\nchain =\n[device]\nlimit = 8GiB\n' >none.conf
	run "$spill" replay d.jsonl -p none.conf
	ends_with 1
	has "of 1 out of memory in the recording, 0 would be served"
	has_not "lack of host memory"
	run "$spill" replay b.jsonl -p p.conf --host 64GiB
	ends_with 0
	run "$spill" replay b.jsonl -p p.conf --host 3GiB
	ends_with 1
	# By oom.honest_first it was asked again, with a line of its own.
	run_of alloc:1:8192 oom:4096:oom.honest_first alloc:2:4096 >c.jsonl
	query='.runs[0] | [.fits, .was_refused, .allocs]'
	[ "$(json c.jsonl)" = '[true,0,2]' ]
}

@test "host.limit as a share counts where the host is known" {
	policy '[device]\nreserve = 0\n[movable]\nenable = off\n[host]\nlimit = 50%\nreserve = 0\n'
	run_of alloc:1:3072 alloc:2:2048 >a.jsonl
	run "$spill" replay a.jsonl -p p.conf --vram 4GiB
	ends_with 0
	has "the log lacks the size of host memory"
	run "$spill" replay a.jsonl -p p.conf --vram 4GiB --host 2GiB
	ends_with 0
	has_not "the log lacks the size of host memory"
	run "$spill" replay a.jsonl -p p.conf --vram 4GiB --host 2046MiB
	ends_with 1
	has "refused by host.limit"
}

@test "a program that frees its caches is told first, and asks again" {
	policy '[device]\nreserve = 0\n[movable]\nenable = off\n'
	run_of alloc:1:3072:libc10_cuda.so+0x1 alloc:2:2048:libc10_cuda.so+0x1 >a.jsonl
	run "$spill" replay a.jsonl -p p.conf --vram 4GiB
	ends_with 0
	has "1 out of memory would surface by oom.honest_first"
	policy '[device]\nreserve = 0\n[movable]\nenable = off\n[oom]\nchain = host\n'
	run "$spill" replay a.jsonl -p p.conf --vram 4GiB
	ends_with 0
	has "1 out of memory would surface by oom.honest_first"
}

@test "rules about paths: known of the program itself only" {
	policy '[rule path]\ncaller = /opt/*\nplace = host\n'
	run_of alloc:1:1024:llama-server+0x10 alloc:2:1024:libggml.so+0x1 >a.jsonl
	run "$spill" replay a.jsonl -p p.conf
	ends_with 0
	has_line "             1    1.00 GiB  device -> host"
	has_line "  the log has no paths of libraries, so these rules can only match the program itself by caller: path"
}

@test "a rule and an [app] for the program of the log, and a profile" {
	policy '[rule a]\nprogram = llama-*\nplace = host\n'
	run_of alloc:1:1024 >a.jsonl
	query='.runs[0].elsewhere.by_rule[].name'
	[ "$(json a.jsonl)" = '"a"' ]
	sed 's/llama-server/other/' a.jsonl >b.jsonl
	[ -z "$(json b.jsonl)" ]
	run "$spill" replay a.jsonl --profile gh200-managed
	ends_with 0
	has_line "  under          profile gh200-managed"
	has "device -> managed"
}

@test "without another policy each run is decided under its own, as recorded" {
	mkdir both
	POLICY=$(options spill.mode=spill device.reserve=0 movable.enable=off oom.chain=) run_of alloc:1:3072 alloc:2:2048 >both/a.jsonl
	POLICY=$(options device.reserve=0 movable.enable=off oom.chain=host "device 0.limit=6GiB" "rule kv=caller = libkv*; over = refuse") \
		run_of alloc:1:3072 alloc:2:2048 alloc:3:4096:libkv.so+0x7 >both/b.jsonl
	POLICY=$(options device.reserve=0) run_of alloc:1:3072 alloc:2:2048:libkv.so+0x7 >both/c.jsonl
	run "$spill" replay both/a.jsonl
	ends_with 0
	[ "${lines[0]}" = "would run: nothing would be out of memory; 0 of 2 allocations would be elsewhere than they were" ]
	[ "${lines[2]}" = "  under          its own policy, as recorded" ]
	run "$spill" replay both/a.jsonl --vram 4GiB
	ends_with 1
	has "refused by driver, rule default"
	run "$spill" replay both/b.jsonl --vram 16GiB
	ends_with 1
	has_line "  on             device 0 of 16.00 GiB (--vram), of which 0 B is not this program's (not in the log: counted as 0; --other SIZE); device.limit 6.00 GiB"
	has "4.00 GiB asked by libkv.so+0x7 with cudaMalloc, device 0; refused by rule.over, rule kv"
	run "$spill" replay both --vram 4GiB
	[ "${lines[0]}" = "1 of 3 runs would not run out of memory" ]
	[ "$("$spill" replay --json both --vram 4GiB | jq -c '[.policy, .profile, .as_recorded, [.runs[] | .first.rule, .spilled.host_bytes, .refused]]')" \
		= '[null,null,true,["default",0,1,"kv",2147483648,1,null,0,0]]' ]
	policy ''
	[ "$("$spill" replay --json both -p p.conf | jq .as_recorded)" = false ]
	# The environment of now says nothing.
	SPILL_DEVICE_LIMIT=1MiB run "$spill" replay both/a.jsonl
	has "0 of 2 allocations would be elsewhere"
}

@test "what a start line lacks is told of each run apart" {
	POLICY=$(options device.reserve=0 device.limit=none oom.chain=host) run_of alloc:1:1024 >a.jsonl
	POLICY=$(options device.reserve=0) run_of alloc:1:1024 >b.jsonl
	"$spill" replay --json a.jsonl b.jsonl >both.json
	jq -e '[.runs[].options_not_recorded | contains("oom.chain")] == [false, true]' both.json
	jq -e '[.runs[].options_not_recorded | contains("device.reserve")] == [false, false]' both.json
}

@test "a recorded rule is read as it was written: with semicolons in a pattern, and with each of its conditions" {
	rule='size = 1GiB..; api = cudaMalloc; caller = lib; device = *; place = host'
	POLICY=$(options device.reserve=0 "rule a=$rule") run_of alloc:1:1024:'lib; device = 1+0x1' >a.jsonl
	run "$spill" replay a.jsonl
	ends_with 2
	has "a.jsonl:1: not a policy that this spill knows: "
	POLICY=$(options device.reserve=0 "rule a=size = 2GiB..; api = cudaMalloc; caller = lib; x = *.so; place = host" "rule b=caller = lib*; place = managed") \
		run_of alloc:1:2048:'lib; x = yz.so+0x1' alloc:2:1024:'lib; x = yz.so+0x1' alloc:3:2048:'lib; x = yz.so+0x1:cuMemAlloc_v2' alloc:4:2048:prog+0x1 >a.jsonl
	run "$spill" replay a.jsonl --list
	has_line "             1    2.00 GiB    2.00 GiB  device -> host, a, lib; x = yz.so+0x1"
	has "device -> managed, b, lib; x = yz.so+0x1"
	has "3 of 4 allocations would be elsewhere"
}

@test "recorded options of the log and of spill run decide nothing, even those of another version" {
	POLICY=$(options device.reserve=0 log.path=/tmp/cut log.later=1 run.framework=later) run_of alloc:1:1024 >a.jsonl
	run "$spill" replay a.jsonl
	ends_with 0
	POLICY=$(options device.reserve=0 logs.path=/tmp/cut) run_of alloc:1:1024 >a.jsonl
	run "$spill" replay a.jsonl
	ends_with 2
	has "a.jsonl:1: not a policy that this spill knows: "
}

@test "a start line without the policy, or with one of another version, says what to give instead" {
	run_of alloc:1:1024 >a.jsonl
	run "$spill" replay a.jsonl
	ends_with 2
	[ "${lines[0]}" = "spill replay: a.jsonl:1: the start line does not have the policy; give one: --policy FILE or --profile NAME (none: as without any setting)" ]
	while IFS='|' read -r option message; do
		POLICY=$(options device.reserve=0 "$option") run_of alloc:1:1024 >b.jsonl
		run "$spill" replay b.jsonl
		ends_with 2
		[[ ${lines[0]} == "spill replay: b.jsonl:1: not a policy that this spill knows: "*"; give one: --policy FILE or --profile NAME (none: as without any setting)" ]]
		has "$message"
	done <<-END
		device.turbo=1|unknown key 'turbo'
		device.limit=plenty|plenty
		turbo=1|an option without a section
		$(printf '%0100d' 0).limit=1|an option without a section
		rule a=place|a rule is cut, or none of ours
		rule a=size = 1MiB..|the rule does nothing
		rule a=plaice = host|unknown key 'plaice'
		rule a=place = hos|hos
		rule $(printf '%0100d' 0)=place = host|the name of a rule is too long
		rule a=caller = $(printf '%02000d' 0)|a rule is too long
	END
	# What of the log is in it steers no terminal: C1, too.
	POLICY=$(options 'device.limit=\u001b[31m\u009b5m') run_of alloc:1:1024 >b.jsonl
	run "$spill" replay b.jsonl
	has "bad size '?[31m?5m'"
	mapfile -t rules < <(for i in {1..65}; do echo "rule r$i=place = host"; done)
	POLICY=$(options "${rules[@]}") run_of alloc:1:1024 >b.jsonl
	run "$spill" replay b.jsonl
	ends_with 2
	has "too many rules"
	# Where the log was, and how the program was started, decides nothing: a path that was cut within a %, a word or a key of another version.
	for option in log.path=/logs/% log.stderr=loud log.colour=1 run.framework=later run.colour=1; do
		POLICY=$(options device.reserve=0 "$option") run_of alloc:1:1024 >b.jsonl
		run "$spill" replay b.jsonl
		has "0 of 1 allocations would be elsewhere"
	done
	# What an older version did not have yet is told, and is as by default.
	run "$spill" replay "$data/kept/first.jsonl"
	has_line "  options that the recorded policy lacks have their defaults: spill.profile, device.memory, host.share, host.numa, host.ahead, movable.enable, movable.min, movable.chunk, movable.above, movable.wait, movable.follow, movable.audit, movable.record, meminfo.report"
	[ "$("$spill" replay --json "$data/kept/first.jsonl" | jq -r '.runs[0].options_not_recorded | split(", ") | length')" = 14 ]
	# Without a start line there is no device to judge by, either.
	POLICY=$(options device.reserve=0) run_of alloc:1:1024 | tail -n +2 >c.jsonl
	run "$spill" replay c.jsonl
	ends_with 1
	has "could not be judged: the log does not begin with a start line"
}

@test "of what was only observed it is said that nothing spills" {
	POLICY=$(options spill.mode=observe device.reserve=0) run_of alloc:1:3072 alloc:2:2048 >a.jsonl
	run "$spill" replay a.jsonl
	ends_with 0
	has_line "  under          its own policy, as recorded, spill.mode = observe"
	run "$spill" replay a.jsonl --vram 4GiB
	ends_with 1
	has "refused by driver"
}

@test "the environment and the user's files say nothing" {
	policy '[device]\nreserve = 0\n'
	mkdir -p config/spill
	printf '[rule a]\nplace = host\n' >config/spill/spill.conf
	run_of alloc:1:1024 >a.jsonl
	SPILL_DEVICE_LIMIT=1MiB run "$spill" replay a.jsonl -p p.conf
	has "0 of 1 allocations would be elsewhere"
}

@test "what is not in the log cannot be judged" {
	policy '[device]\nreserve = 0\n'
	LEVEL=spills run_of alloc:1:1024 >a.jsonl
	run "$spill" replay a.jsonl -p p.conf
	ends_with 1
	[ "${lines[0]}" = "could not be judged: log.level was spills: allocations that fitted are not in the log" ]
	{ run_of alloc:1:1024; echo '{"v":1,"kind":"drop","t":9.0,"alloc":{"count":1,"device_bytes":5,"host_bytes":0,"managed_bytes":0},"peak":{"device_bytes":5,"host_bytes":0,"managed_bytes":0}}'; } >b.jsonl
	run "$spill" replay b.jsonl -p p.conf
	ends_with 1
	has "could not be judged: log.max left lines out"
	run_of alloc:1:1024 | tail -n +2 >c.jsonl
	run "$spill" replay c.jsonl -p p.conf
	ends_with 1
	has "could not be judged: the log does not begin with a start line"
}

@test "a device larger than addresses reach is as large as they do, so that a hostile log is no work" {
	policy '[movable]\nenable = on\n[device]\nreserve = 0\n'
	# Chunks are counted one by one when they move: of 2^62 bytes for hours.
	run_of alloc:1:1099511627776 alloc:2:1099511627776 | sed 's/"bytes":17179869184/"bytes":4611686018427387904/' >huge.jsonl
	run timeout 60 "$spill" replay huge.jsonl -p p.conf
	has "on             device 0 of 128.00 TiB"
	[ "$status" -ne 124 ]
}

@test "ranks: each one, and their peaks together where they share a device" {
	policy '[device]\nreserve = 0\n'
	mkdir ranks
	RANK=0 run_of alloc:1:9216 >ranks/a-1.jsonl
	RANK=1 run_of alloc:1:9216 >ranks/a-2.jsonl
	RANK=2 UUID=GPU-1 run_of alloc:1:9216 >ranks/a-3.jsonl
	run "$spill" replay ranks -p p.conf
	ends_with 0
	[ "${lines[0]}" = "3 of 3 runs would not run out of memory" ]
	[ "${lines[1]}" = "  ranks/a-1.jsonl, rank 0: would run: nothing would be out of memory; 0 of 1 allocations would be elsewhere than they were" ]
	has_line "  GPU-0 on node7: 2 runs, their peaks together 18.00 GiB of 16.00 GiB: too much if they run at once"
	has_not "GPU-1 on node7"
	query='[(.runs | length), .shared]'
	[ "$(json ranks)" = '[3,[{"host":"node7","uuid":"GPU-0","runs":2,"bytes":17179869184,"peak":19327352832}]]' ]
	run "$spill" replay ranks -p p.conf --vram 8GiB --without vmm,managed,host
	ends_with 1
	[ "${lines[0]}" = "0 of 3 runs would not run out of memory" ]
}

@test "devices that runs share are in the order of the runs" {
	policy '[device]\nreserve = 0\n'
	mkdir ranks
	RANK=0 UUID=GPU-9 run_of alloc:1:1024 >ranks/a-1.jsonl
	RANK=1 UUID=GPU-1 run_of alloc:1:2048 >ranks/a-2.jsonl
	RANK=2 UUID=GPU-1 run_of alloc:1:3072 >ranks/a-3.jsonl
	RANK=4 UUID=GPU-95 run_of alloc:1:1024 >ranks/a-5.jsonl
	RANK=5 UUID=GPU-95 run_of alloc:1:1024 >ranks/a-6.jsonl
	RANK=3 UUID=GPU-9 run_of alloc:1:4096 | sed "1s/\"bytes\":$((16 << 30))/\"bytes\":$((8 << 30))/" >ranks/a-4.jsonl
	query='[.shared[] | [.uuid, .runs, .bytes, .peak]]'
	[ "$(json ranks)" = '[["GPU-9",2,17179869184,5368709120],["GPU-1",2,17179869184,5368709120],["GPU-95",2,17179869184,2147483648]]' ]
}

@test "a margin that is to stay free" {
	policy '[device]\nreserve = 0\n'
	run_of alloc:1:14336 >a.jsonl
	run "$spill" replay a.jsonl -p p.conf --margin 2GiB
	has "with 2.00 GiB of the card, or what others held, kept free"
	has_not " missing"
	run "$spill" replay a.jsonl -p p.conf --margin 3GiB
	has "with 3.00 GiB of the card, or what others held, kept free"
	has "no: 1.00 GiB missing"
	[ "$("$spill" replay --json a.jsonl -p p.conf --margin 3GiB | jq .margin)" -eq $((3 << 30)) ]
}

@test "lines that are no records, and those of later versions, are told in the end" {
	policy '[device]\nreserve = 0\n'
	{ run_of alloc:1:1024 alloc:2:1024; echo torn; echo '{"v":2,"kind":"alloc","t":1.0}'; echo '{"v":2,"kind":"alloc","t":1.0}'; } >a.jsonl
	run "$spill" replay a.jsonl -p p.conf
	has_line "  figures may be wrong: 1 line that cannot be read as a record, 2 records of a later version, 0 events too late for their order"
	run_of alloc:1:1024 alloc:2:1024 >a.jsonl
	run "$spill" replay a.jsonl -p p.conf
	has_not "figures may be wrong"
}

@test "what others held is told by moves, too, and is not taken to a card that is too small for it" {
	log=$BATS_TEST_DIRNAME/../docs/data/llama-server.jsonl
	told() { "$spill" replay --json "$log" "$@" | jq -c "$query"; }
	query='.runs[0] | .devices[0].other_told, (.devices[0].other >= 134 * 1073741824), .devices[0].other == .devices[0].fit.others, .spills > 0'
	[ "$(told | tr '\n' ' ')" = "true true true true " ]
	query='.runs[0] | [.judged, .why]'
	[ "$(told --vram 16GiB)" = '[false,"other programs held more of the recorded card than --vram has: give --other SIZE"]' ]
	[ "$(told --vram 16GiB --other 1GiB)" = '[true,null]' ]
}

@test "a card or a host of a few bytes is told" {
	policy '[device]\nreserve = 0\n'
	run_of alloc:1:1024 >a.jsonl
	run "$spill" replay a.jsonl -p p.conf --vram 16 --host 64GiB --other 2000
	[ "${lines[0]}" = "spill replay: --vram is 16 bytes; did you mean 16GiB or 16MiB?" ]
	[ "${lines[1]}" = "spill replay: --other is 2000 bytes; did you mean 2000MiB?" ]
	[[ ${lines[2]} == "would run: "* ]]
	ends_with 0
	run "$spill" replay a.jsonl -p p.conf --other 0
	has_not "did you mean"
}

@test "each member of the JSON is described, and none that there is not" {
	policy '[device]\nreserve = 0\n[oom]\nchain =\n'
	UUID=GPU-1 run_of alloc:1:1024 alloc:2:2048 oom:1024 >a.jsonl
	"$spill" replay --json --list -p p.conf a.jsonl a.jsonl --vram 2GiB --other 2GiB >all.json || [ $? -eq 1 ]
	described replay all.json
	# And in its place: some names are in several objects.
	diff <(jq -r '(keys_unsorted | join(" ")), (paths(type == "object") as $p | select([$p[] | numbers] | all(. == 0)) | "\($p | map(tostring) | join(".")): \(getpath($p) | keys_unsorted | join(" "))")' all.json) - <<-END
		fits policy profile as_recorded margin runs shared
		runs.0: log line program host rank fits judged why allocs refused newly_refused first was_refused now_served honest elsewhere spills spilled demotions demoted_bytes promoted_bytes peak devices rules_not_judged options_not_recorded
		runs.0.first: t dev api caller bytes live rule refused_by
		runs.0.first.live: device_bytes host_bytes managed_bytes
		runs.0.elsewhere: allocs bytes ways by_caller by_rule list
		runs.0.elsewhere.ways.0: from to allocs bytes
		runs.0.elsewhere.by_caller.0: name allocs bytes off_device
		runs.0.elsewhere.by_rule.0: name allocs bytes off_device
		runs.0.elsewhere.list.0: seq bytes from to off_device rule caller
		runs.0.spilled: device_bytes host_bytes managed_bytes
		runs.0.peak: device_bytes host_bytes managed_bytes
		runs.0.devices.0: dev uuid bytes other other_told peak fit limit_all limit_least
		runs.0.devices.0.peak: device_bytes host_bytes managed_bytes
		runs.0.devices.0.fit: usable wanted device_bytes host_bytes managed_bytes refused others free surplus reserved reserve
	END
}

@test "wrong use" {
	policy '[device]\nreserve = 0\n'
	run_of alloc:1:1024 >a.jsonl
	while IFS='|' read -r arguments message; do
		# shellcheck disable=SC2086
		run "$spill" replay $arguments
		ends_with 2
		has "$message"
	done <<-'END'
		|which log, or which folder of logs?
		a.jsonl -p p.conf --profile fit-margin|under which policy?
		a.jsonl -p none.conf|none.conf: no such file
		a.jsonl --profile fit-margins|fit-margin
		a.jsonl -p p.conf --vram 12GB|bad --vram '12GB'
		a.jsonl -p p.conf --vram 0|bad --vram '0': a card has some memory
		a.jsonl -p p.conf --without vram|bad --without 'vram': a list of vmm, move, managed, host
		a.jsonl -p p.conf --polcy x|unknown option '--polcy'; the nearest is '--policy'
	END
	printf '[device]\nlimits = 1GiB\n' >bad.conf
	run "$spill" replay a.jsonl -p bad.conf
	ends_with 2
	has "bad.conf:2:1: "
	has "limit"
	run "$spill" replay none.jsonl -p p.conf
	ends_with 1
	has "none.jsonl: No such file"
}

@test "a request that no device could serve" {
	policy '[device]\nreserve = 0\n[rule "never"]\nsize = 1GiB..\nplace = refuse\n'
	run_of alloc:1:1024 alloc:2:16 >a.jsonl
	run "$spill" replay a.jsonl -p p.conf
	has_line "  no device.limit would do: a request is refused on a device of any size"
	has_not "from device.limit ="
	query='.runs[0].devices[0] | has("limit_least")'
	[ "$(json a.jsonl)" = false ]
}
