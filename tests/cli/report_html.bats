load help.bash

oracle() { python3 "$BATS_TEST_DIRNAME/report_oracle.py" "$@"; }

# What `spill report "$@"` says, as a page and as --json: the same.
same() {
	run "$spill" report --html page.html "$@"
	[[ $output != *"built without the library"* ]] || skip "libjs-dygraphs was not there when spill was built"
	"$spill" report --json "$@" >report.json || [ "$status" -eq 1 ]
	python3 "$BATS_TEST_DIRNAME/page_check.py" page.html report.json
}
# A member of the page's data.
data() { page_data <page.html | jq "$@"; }

@test "the page has the figures of --json, and curves and marks that agree with them" {
	for log in run moves killed fit; do
		same "$data/$log.jsonl" || { echo "$log"; return 1; }
	done
}

@test "logs of several threads, devices and kinds of memory; also killed, and with spills only" {
	local seed=0 how
	for how in "" "" killed spills all threads; do
		seed=$((seed + 1))
		oracle make $seed 600 $how >$seed.jsonl
		same $seed.jsonl || { echo "$seed $how"; return 1; }
	done
	oracle make 12 600 all >peak.jsonl # its peaks are between lines
	same peak.jsonl
}

@test "what log.max left out is told, and since when" {
	same "$data/dropped.jsonl"
	data -e '.stories[0].left_out_since > 0'
	same "$data/run.jsonl"
	data -e '.stories[0] | has("left_out_since") | not'
}

@test "a folder of ranks: a story each, in the order of ranks" {
	mkdir ranks
	for rank in 0 2 10; do
		oracle make "$rank" 300 | jq -c "if .kind == \"start\" then .rank = {RANK: \"$rank\"} else . end" >"ranks/$rank.jsonl"
	done
	same ranks
	[ "$(data -c '[.runs[].rank]')" = '["0","2","10"]' ]
	[[ $output == "page.html: 3 runs, "*"; open it in a browser" ]]
}

@test "stories stay with their runs when ranks are sorted" {
	mkdir ranks
	jq -c 'if .kind == "start" then .rank = {RANK: "1"} | .args = ["first"] else . end' "$data/run.jsonl" >ranks/a.jsonl
	jq -c 'if .kind == "start" then .rank = {RANK: "0"} | .args = ["second"] else . end' "$data/moves.jsonl" >ranks/b.jsonl
	same ranks
	[ "$(data -c '[.stories[].args[0]]')" = '["second","first"]' ]
}

@test "ranks of two hosts on one clock, and those that stand out" {
	local at
	mkdir ranks
	for at in 0:node7:03 1:node8:04; do
		jq -c --arg rank "${at%%:*}" --arg host "${at:2:5}" --arg hour "${at##*:}" 'if .kind == "start" then
			.rank = {RANK: $rank, SLURM_JOB_ID: "17"} | .host = $host | .time = "2026-11-21T\($hour):50:51.000000Z" else . end' \
			"$data/moves.jsonl" >"ranks/$at.jsonl"
	done
	same ranks
	[ "$(data -c '[.runs[].begin, .ranks.hosts[1].clock_ahead_us, .ranks.held_up_most.run]')" = '[0,0,3600000000,0]' ]
}

@test "a run that has only begun, and an empty file" {
	head -n 1 "$data/run.jsonl" >begun.jsonl
	same begun.jsonl
	[ "$(data '.stories[0].lanes | length')" -eq 0 ]
	: >empty.jsonl
	run "$spill" report --html none.html empty.jsonl
	ends_with 1
	has "no run was read"
	[ ! -e none.html ]
}

@test "policy, arguments, limits and margins of the run" {
	same "$data/run.jsonl"
	[ "$(data -c '.stories[0].policy[1]')" = '{"name":"device.limit","value":"4GiB","source":"environment"}' ]
	[ "$(data -c '.stories[0].args')" = '["llama-server"]' ]
	[ "$(data '.stories[0].lanes[0].limit')" -eq $((4 << 30)) ]
	"$spill" report --json --margin 138GiB "$data/run.jsonl" >report.json || true
	run "$spill" report --margin 138GiB --html page.html "$data/run.jsonl"
	[ "$(data '.stories[0].margins[] | select(.margin == (138 * 1024 * 1024 * 1024)) | .surplus')" -eq "$(jq '.runs[0].devices[0].fit.surplus' report.json)" ]
}

@test "what a program calls itself is text, whatever it is" {
	hostile='</script><script>document.title="X"</script><!-- <script> ]]> & &lt; \u2028\u2029 \u0000 \u001b[2J " ${x} `'
	jq -c --arg t "$hostile" --argjson s '"\u2028\u2029</ScRiPt ><!--"' '
		if .kind == "start" then .program = $t | .host = $s | .args = [$t, $s] | .policy[1].value = $t | .devices[0].name = $t
		elif .caller then .caller = $t + .caller | .api = $s else . end' "$data/run.jsonl" >'<script>&<b>.jsonl'
	printf '{"v":1,"kind":"note","t":15.0,"tid":1,"code":"c","text":"%s"}\n' '</script><img src=x onerror=1>' >>'<script>&<b>.jsonl'
	same '<script>&<b>.jsonl'
	[ "$(data '.runs[0].program == $t' --arg t "$hostile")" = true ]
	[ "$(grep -c '</script' page.html)" -eq 3 ]
}

@test "more callers than a page has room for: it says how many" {
	oracle make 1 20 >head.jsonl
	{
		head -n 1 head.jsonl
		for n in $(seq 1 250); do
			echo "{\"v\":1,\"kind\":\"alloc\",\"t\":$n.0,\"seq\":$n,\"order\":$n,\"tid\":1,\"dev\":0,\"api\":\"a\",\"caller\":\"c$n\",\"bytes\":$n,\"ptr\":\"0x10\",\"place\":\"device\",\"device_bytes\":$n,\"reason\":\"fits\",\"rule\":\"default\",\"us\":1}"
		done
	} >callers.jsonl
	same callers.jsonl
	[ "$(data '.runs[0].by_caller | length')" -eq 200 ]
	[ "$(data '.stories[0].rows.by_caller')" -eq 250 ]
}

@test "a page is bounded, however long the log is" {
	python3 "$BATS_TEST_DIRNAME/../bench/long_log.py" 30000 >long.jsonl
	same long.jsonl
	[ "$(data '.stories[0].lanes[0].after | length')" -le 2048 ]
	[ "$(data '.stories[0].lanes[0].after | length')" -gt 1024 ]
	[ "$(stat -c %s page.html)" -lt $((1 << 20)) ]
}

@test "exit status as without it" {
	same "$data/run.jsonl"
	ends_with 1
	same "$data/moves.jsonl"
	"$spill" report "$data/moves.jsonl" >/dev/null
	ends_with $?
}

@test "standard output, and a pipe" {
	same "$data/moves.jsonl"
	"$spill" report --html - "$data/moves.jsonl" >out.html
	cmp page.html out.html
	mkfifo pipe
	"$spill" report --html pipe "$data/moves.jsonl" &
	cat pipe >out.html
	wait $!
	cmp page.html out.html
	[ -p pipe ]
}

@test "a file is replaced whole: its mode and a link to it stay, nothing else is left behind" {
	mkdir out
	echo old >out/page.html
	chmod 640 out/page.html
	ln -s out/page.html link.html
	"$spill" report --html link.html "$data/moves.jsonl"
	[ -L link.html ]
	[ "$(stat -c %a out/page.html)" = 640 ]
	grep -q '<title>' out/page.html
	(umask 027 && "$spill" report --html out/new.html "$data/moves.jsonl")
	[ "$(stat -c %a out/new.html)" = 640 ]
	[ "$(ls -A out)" = $'new.html\npage.html' ]
}

@test "what cannot be written is said, and what was there stays" {
	run "$spill" report --html nowhere/page.html "$data/moves.jsonl"
	ends_with 1
	has "spill report: nowhere/page.html: No such file or directory"
	run "$spill" report --html /dev/full "$data/moves.jsonl"
	ends_with 1
	has "spill report: /dev/full: No space left on device"
	mkdir folder
	run "$spill" report --html folder "$data/moves.jsonl"
	ends_with 1
	has "spill report: folder: Is a directory"
	[ -z "$(ls -A folder)" ]
	run bash -c '"$0" report --html - "$1" >/dev/full' "$spill" "$data/moves.jsonl"
	ends_with 1
}

@test "a page is never written over a log" {
	mkdir ranks
	cp "$data/run.jsonl" ranks/a.jsonl
	sed '1s/{"v":1/{ "v": 1/' "$data/run.jsonl" >ranks/other.jsonl
	cp ranks/other.jsonl kept
	ln ranks/other.jsonl other.name
	cp "$data/moves.jsonl" moves.jsonl
	for page in ranks/a.jsonl ranks/other.jsonl other.name moves.jsonl; do
		run "$spill" report --html $page ranks
		ends_with 2
		has "--html '$page' is a log"
	done
	cmp ranks/a.jsonl "$data/run.jsonl"
	cmp ranks/other.jsonl kept
	cmp moves.jsonl "$data/moves.jsonl"
}

@test "wrong use" {
	run "$spill" report --html
	ends_with 2
	run "$spill" report --html page.html
	ends_with 1
	has "no log is there"
	run "$spill" report --html page.html --json "$data/run.jsonl"
	ends_with 2
	has "one of --json and --html"
	[ ! -e page.html ]
}
