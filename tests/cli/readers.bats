# The first screen of `spill report` on logs of real runs (data/README). Readers who did not know libspill
# misread it; each test shows that what they misread is now told in words.
load help.bash

names="torch jax oom killed llama"

# Once for all tests: the logs as NAME.jsonl, with the report of each as text and JSON, and the data of its page.
setup_file() {
	cd "$BATS_FILE_TMPDIR"
	cp "$BATS_TEST_DIRNAME/data/h200-oom.jsonl" oom.jsonl
	cp "$BATS_TEST_DIRNAME/../docs/data/jax.jsonl" jax.jsonl
	cp "$BATS_TEST_DIRNAME/../docs/data/llama-bench.jsonl" llama.jsonl
	for name in torch killed two; do gzip -dc "$BATS_TEST_DIRNAME/data/h200-$name.jsonl.gz" >$name.jsonl; done
	for name in $names two; do
		"$BUILD/spill" report $name.jsonl >$name.txt || [ $? -eq 1 ]
		"$BUILD/spill" report --json $name.jsonl >$name.json || [ $? -eq 1 ]
		"$BUILD/spill" report --html - $name.jsonl | page_data >$name.page.json
	done
}

logs() { ln -s "$BATS_FILE_TMPDIR"/*.jsonl "$BATS_FILE_TMPDIR"/*.txt "$BATS_FILE_TMPDIR"/*.json .; }
of() { jq -r ".runs[0] | $2" "$1.json"; }
screen() { head -n 24 "$1.txt"; }
line() { sed -n "s/^  $2  *//p" "$1.txt"; }
# In each log the line of the text is the member of the JSON, and of the page's data: `told_alike LINE MEMBER`.
told_alike() {
	for name in $names; do
		[ "$(line $name "$1")" = "$(of $name "$2")" ]
		[ "$(of $name.page "$2")" = "$(of $name "$2")" ]
	done
}

@test "spilled is one word for one thing, and the first screen has no raw count" {
	logs
	for name in $names; do
		[[ $(line $name spilled) == "yes: $(of $name .story.size)" ]]
		screen $name | lacks 'spills [0-9]|demotions|[0-9]{9}'
		lacks '^  spilled +[0-9]|spills [0-9]' <"$name.txt"
		"$spill" report --summary "$name.jsonl" | grep -q ' placed off  *spilled '
		"$spill" log "$name.jsonl" | lacks ' allocations spilled'
	done
	"$spill" log llama.jsonl | grep -qF 'end (exit): 1 of 11 allocations placed off the card, in all 1.61 GiB host; '
	# To the byte they come last, in the words of the top.
	grep -qxF '  moved to the host 1016 times (27049066496 bytes), moved back 735 times (23156752384 bytes)' torch.txt
}

@test "peaks of different moments are no sum, and the sum of the advice is written out" {
	logs
	[ "$(of torch .story.size)" = "up to 3.84 GiB was in host memory; at most 8.78 GiB was wanted at once, and at most 5.38 GiB was on the card, at different moments" ]
	[[ $(of llama .story.size) == *" at different moments" ]]
	[[ $(line torch 'to fit') == *"3.46 GiB less on device 0 (8.78 GiB needed + 64.00 MiB device.reserve - 5.38 GiB room = 3.46 GiB)"* ]]
	for name in $names; do
		# The sum is right to the rounding of its parts.
		of $name .advice | python3 -c '
import re, sys
units = {"MiB": 1 / 1024, "GiB": 1}
of = lambda size: float(size.split()[0]) * units[size.split()[1]]
less, wanted, reserve, room, total = re.search(r"(\S+ .iB) less on device 0 \((\S+ .iB) needed \+ (\S+ .iB) device.reserve - (\S+ .iB) room = (\S+ .iB)\)", sys.stdin.read()).groups()
assert less == total and abs(of(wanted) + of(reserve) - of(room) - of(total)) < 0.02'
	done
	# Peaks that did come together, on the simulator.
	run "$spill" report "$data/run.jsonl"
	has_line "  spilled        yes: up to 2.04 GiB was in host memory; at most 8.04 GiB was wanted at once, and at most 6.00 GiB was on the card"
}

@test "whether it would have fitted is an answer, with what was missing" {
	logs
	for name in $names; do
		run cat "$name.txt"
		has_line "  would it have fitted when it needed most, with 1.00 GiB of the card, or what others held, kept free?"
		has_not "surplus"
		[ "$(of $name '.devices[0].fit.surplus < 0')" = true ]
		[ "$(of $name '.devices[0].fit.reserve')" = 67108864 ]
		[[ $output == *"  no: "*" missing, and 64.00 MiB for device.reserve"* ]]
	done
	run cat torch.txt
	has "  no: 3.40 GiB missing, and 64.00 MiB for device.reserve"
}

@test "what others held: who they may be, in the same words everywhere" {
	logs
	others="held by other programs and by contexts and code, this program's too (nvidia-smi or rocm-smi shows whose)"
	told_alike 'memory lacked' '"device 0: " + .devices[0].shortage.text'
	for name in $names; do
		[[ $(line $name 'memory lacked') == *" needed by this program"*"; 134."*" GiB $others; "* ]]
	done
	# The request that was refused is a part of what was wanted.
	[[ $(line oom 'memory lacked') == "device 0: 6.40 GiB needed by this program (64.00 MiB of it refused); "* ]]
	grep -qF "GiB held by this process; 134.41 GiB $others" oom.txt
}

@test "the cost has its whole: a share of what" {
	logs
	[ "$(line torch cost)" = "moves held the program up for 1.85 s, 47 % of the 3.9 s" ]
	[ "$(line oom cost)" = "moves held the program up for 0.27 s, 20 % of the 1.3 s" ]
	told_alike cost .story.cost
}

@test "out of memory: refused once on purpose is not final, and the cause comes before all" {
	logs
	[ "$(line torch 'out of memory')" = "none was final; 20 requests were refused once on purpose, so that the program frees its cache and asks again" ]
	[ "$(line oom 'out of memory')" = "1 was final; 6 requests were refused once on purpose, so that the program frees its cache and asks again" ]
	[ "$(line jax 'out of memory')" = "none" ]
	told_alike 'out of memory' .story.refusals
	# The one that was final, as on the page, and none of those that were asked again.
	[ "$("$spill" report --summary torch.jsonl oom.jsonl | awk '/jsonl$/ { print $(NF - 3) } /^  sum / { print $NF }' | xargs)" = "0 1 1" ]
	run screen oom
	[[ ${lines[2]} == "  out of memory  "* ]]
	[[ ${lines[3]} == "  refused by     host.limit "* ]]
	[[ ${lines[4]} == "  would help     $(of oom '.ooms[-1].advice')" ]]
}

@test "how it ended: by itself after so long; a killed run by the last thing that its log has" {
	logs
	[ "$(line torch ended)" = "by itself after 3.9 s (the log does not know the exit code)" ]
	# What else is known depends on the machine: it may have the name of the one that wrote the log.
	[[ $(line killed ended) == "no exit line: the program was killed"*"; the figures cover its lines; the last one, at 3.268268 s, is a move of 32.00 MiB back to the card" ]]
	told_alike ended .end
}

@test "advice: words that mean one thing, which amount is for which, and -ngl for llama.cpp only" {
	logs
	told_alike 'to fit' .advice
	for name in $names; do
		lacks 'smaller context|avoided by' <"$name.txt"
		# Another process had filled the card, so it comes first.
		[[ $(of $name .advice) == "less memory of other programs on device 0: they held 134."*" GiB of 139.80 GiB, with contexts and code, and "*" GiB less is enough (nvidia-smi or rocm-smi shows whose); or a smaller batch"*", or a shorter context length, so that no host memory is needed: "* ]]
	done
	for name in torch jax oom killed; do lacks -ngl <"$name.txt"; done
	[[ $(line llama 'to fit') == *"a smaller batch, model or -ngl, or a shorter context length, so that no host memory is needed: 1.73 GiB less on device 0 ("* ]]
	[[ $(line oom 'would help') == "4.44 MiB less of other programs' memory on the device, which hold 134.41 GiB of 139.80 GiB with contexts and code (nvidia-smi or rocm-smi shows whose); or host.limit = 1088MiB at least (it is 1.00 GiB; more if the program goes on to ask); or 4.44 MiB less in use on the device, to get past this request (a smaller batch or model, or a shorter context length): "* ]]
}

@test "rules and reasons: only rules that somebody wrote, and reasons in words" {
	logs
	for name in $names; do screen $name | lacks '^  by rule'; done
	[ "$(line oom 'moved to host')" = "1.00 GiB in 31 moves: 624.00 MiB to keep device.reserve free; 400.00 MiB because the card was full" ]
	[ "$(line torch 'moved to host')" = "25.19 GiB in 1016 moves: 21.82 GiB for memory that was used next; 1.97 GiB to keep device.reserve free; 1.41 GiB because the card was full" ]
	[ "$(line jax 'moved back')" = "258.00 MiB in 3 moves: 256.00 MiB for memory that was used next; 2.00 MiB because there was room again" ]
	[ "$(line llama why)" = "1.61 GiB because the card was full" ]
	grep -qE '  because the card was full$' llama.txt
	# The page has the same words.
	[ "$(jq -r .reasons.use torch.page.json)" = "for memory that was used next" ]
	# A rule that somebody wrote is told.
	sed 's/"rule":"default"/"rule":"mine"/' llama.jsonl >ruled.jsonl
	"$spill" report ruled.jsonl >ruled.txt
	[ "$(line ruled 'by rule')" = "mine 1.79 GiB" ]
}

@test "the rest of the first screen: the driver's version, the log's name, split, and no check of our own" {
	logs
	for name in $names; do
		[[ $(screen $name | head -n 1) == *", cuda driver 13.0" ]]
		[ "$(of $name .driver_version)" = 13.0 ]
		[ "$(line $name log)" = "$name.jsonl" ]
		screen $name | lacks 'exit line)'
	done
	[[ $("$spill" log torch.jsonl | head -n 1) == *", cuda driver 13.0" ]]
	[ "$(line llama where)" = "split: 1.61 GiB of it on the host, the rest on the card" ]
	# One head for each column.
	head=$(grep '^  device  *total  *peak' torch.txt)
	[ "$(tr -s ' ' '\n' <<<"$head" | grep -c managed)" = 2 ]
	[[ $head == *" peak managed "*" end managed "* ]]
	# The second run of a file is told by its line.
	cat torch.jsonl jax.jsonl >both.jsonl
	"$spill" report both.jsonl | grep -qx "  log            both.jsonl:$(($(wc -l <torch.jsonl) + 1))"
}

@test "stderr of the run, text, JSON, page, --summary and spill log have the same figures" {
	logs
	for name in oom llama; do
		last=$(tail -n 1 "$data/h200-$name.stderr")
		for figure in $(sed 's/.*: up to //; s/; log .*//; s/ \([GM]iB\|s\|%\)/_\1/g' <<<"$last" | grep -oE '[0-9.]+_([GM]iB|s|%)'); do
			[[ "$(of $name '.story | .size + "; " + .cost')" == *"${figure/_/ }"* ]]
		done
		"$spill" log "$name.jsonl" | grep -qF "; $(of $name '[.story | .size, .cost, .in_place] | join("; ")'); still held "
	done
	for name in $names; do
		jq -e --slurpfile report "$name.json" '.runs[0].story == $report[0].runs[0].story and .runs[0].advice == $report[0].runs[0].advice' "$name.page.json"
		peak=$(printf %.2f "$(of $name '.story.peak_bytes / 1073741824')")
		"$spill" report --summary "$name.jsonl" | grep -qF " $peak GiB "
		[ "$(of $name '.differences | length')" = 0 ]
	done
}

@test "two devices: a line for each, one sum, and the same words on stderr, in text, JSON and page" {
	logs
	[ "$(line two spilled)" = "yes: up to 3.56 GiB was in host memory; at most 8.67 GiB was wanted at once, and at most 5.62 GiB was on the card, at different moments" ]
	[ "$(line two cost)" = "moves held the program up for 1.71 s, 27 % of the 6.3 s" ]
	# What lacked, and what would help: of each device, in their order.
	[ "$(line two 'memory lacked')" = "$(of two '.devices[] | "device \(.dev): " + .shortage.text')" ]
	[ "$(line two 'memory lacked' | grep -oE '^device [0-9]: [0-9.]+ GiB needed' | xargs)" = "device 0: 4.37 GiB needed device 1: 4.30 GiB needed" ]
	[[ $(line two 'to fit') == "less memory of other programs on device 0: "*"; less memory of other programs on device 1: "*": 1.61 GiB less on device 0 ("*"), 1.53 GiB less on device 1 ("*")" ]]
	[ "$(line two 'to fit')" = "$(of two .advice)" ]
	# Those with most are named, as on the page.
	[ "$(line two 'asked by')" = "torch_model.py:Block.forward 2.63 GiB; late_code_job.py:Vision.__init__.<locals>.<genexpr> 1.04 GiB; libtorch_cpu.so+0x197746c 146.00 MiB; libcublas.so.13+0x5b45ee 64.00 MiB; libtorch_cuda.so+0x3a4b238 64.00 MiB; and 4 more" ]
	# The table of devices has the parts of the peaks, which are of different moments.
	[ "$(awk '/^  device  *total  *peak/ { on = 1; next } /^$/ { on = 0 } on { print $1, $4, $6 }' two.txt | xargs)" = "0 2.84 1.90 1 2.84 1.80" ]
	[ "$(grep -c '  no: 1\.[0-9]* GiB missing, and 64.00 MiB for device.reserve$' two.txt)" = 2 ]
	# The page and the JSON are one.
	for member in .story .advice .end .devices .callers; do
		[ "$(of two.page "$member")" = "$(of two "$member")" ]
	done
	[ "$(of two '.differences | length')" = 0 ]
	# The last line of the run, of five, had the words of the first screen.
	[ "$(wc -l <"$data/h200-two.stderr")" = 5 ]
	[ "$(tail -n 1 "$data/h200-two.stderr")" = "spill: late_code_job.py: $(of two '[.story | .size, .cost, .in_place] | join("; ")'); log /tmp/logs/two.jsonl" ]
	"$spill" log two.jsonl | grep -qF "; $(of two '[.story | .size, .cost, .in_place] | join("; ")'); still held "
	"$spill" report --summary two.jsonl | grep -qF " 3.56 GiB "
}
