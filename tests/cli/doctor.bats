load doctor.bash

@test "without a driver: a fact, and nothing is wrong" {
	machine
	run "$spill" doctor -v --root m
	[[ $output == *"no GPU driver: neither"* || $output == *"driver shows no device"* ]]
	ends_with 0
	[[ ${lines[-1]} =~ ^0\ problems,\ 0\ warnings,\ [0-9]+\ facts:\ nothing\ stands\ in\ the\ way,\ but\ there\ is\ no\ GPU\ here ]]
	has_not "[program]"
}

@test "the table: each finding can be found, has a reason, and says what to do where something is to be done" {
	run python3 - "$BATS_TEST_DIRNAME/../../src/cli/doctor" <<-'END'
		import pathlib, re, sys
		folder = pathlib.Path(sys.argv[1])
		rows = re.findall(r'^FINDING\((\w+), (\w+), (\w+),\s*"((?:[^"\\]|\\.)*)",\s*"((?:[^"\\]|\\.)*)"\)$',
		                  (folder / "findings.def").read_text(), re.M)
		assert len(rows) == (folder / "findings.def").read_text().count("\nFINDING(") > 60, len(rows)
		code = "".join(file.read_text() for file in folder.glob("*.c"))
		for name, level, area, why, what in rows:
		    assert re.search(rf"\bDOCTOR_{name}\b", code), f"{name} is never found"
		    assert why and (what or level == "FACT"), name
		    assert not re.search(r"[.;,]$", why + what), f"{name}: the texts are joined by marks of their own"
	END
	ends_with 0
}

@test "worst first, and the last line sums up" {
	machine
	elf static interp=
	touch m/.dockerenv
	GGML_CUDA_ENABLE_UNIFIED_MEMORY=0 run "$spill" doctor -v --root m -- ./static
	ends_with 1
	[ "$(grep -oE '^(problem|warning|fact) ' <<<"$output" | uniq | tr -d '\n')" = "problem warning fact " ]
	[[ ${lines[-1]} =~ ^1\ problem,\ 1\ warning,\ [0-9]+\ facts:\ something\ does\ not\ work$ ]]
}

@test "facts only with -v; the last line is the verdict" {
	machine
	run env "LD_LIBRARY_PATH=$BUILD/tests/sim" SPILL_SIM_DEVICES=2 "$spill" doctor --quick --root m
	ends_with 0
	has "advice [device] 2 devices are visible"
	has "  why: each device has its own limit"
	has_not "fact ["
	[[ ${lines[-1]} =~ ^0\ problems,\ 0\ warnings,\ 1\ piece\ of\ advice,\ [0-9]+\ facts\ \(-v\ shows\ them\):\ nothing\ stands\ in\ the\ way$ ]]
	GGML_CUDA_ENABLE_UNIFIED_MEMORY=0 run "$spill" doctor --root m
	ends_with 1
	has_not "fact ["
	[[ ${lines[-1]} =~ ^0\ problems,\ 1\ warning,\ [0-9]+\ facts\ \(-v\ shows\ them\):\ it\ works,\ but\ read\ the\ warnings$ ]]
	simulated -- --root m
	[[ ${lines[-1]} =~ facts:\ nothing\ stands\ in\ the\ way$ ]]
	has_not "devices are visible"
}

@test "as JSON: every finding with what, why and what to do" {
	machine
	elf 'pr"og' needed=libnowhere.so.1
	run "$spill" doctor -v --root m --json -- './pr"og'
	ends_with 1
	printf %s "$output" >out
	run python3 -c '
import json
report = json.load(open("out"))
print(report["program"], report["problems"], report["warnings"], report["facts"] + report["advice"] == len(report["findings"]) - 1)
for one in report["findings"]:
    assert list(one) == ["check", "level", "area", "what", "why", "do"], one
    assert one["why"] and (one["do"] or one["level"] == "fact"), one
    if one["level"] == "problem": print(one["check"], one["area"], one["what"])'
	has_line './pr"og 1 0 True'
	has_line 'library_missing program pr"og needs libnowhere.so.1, which is not found'
	"$spill" doctor -v --root m --json | python3 -c 'import json, sys; assert json.load(sys.stdin)["program"] is None'
}

@test "names of files cannot steer the terminal" {
	machine
	run "$spill" doctor -v --root m -- $'./a\x1b[31m'
	has "./a?[31m is not there"
}

@test "wrong usage" {
	run "$spill" doctor -v --timeout
	ends_with 2
	has "option '--timeout' needs a value"
	for value in 0 -1 x 601 1.5 ""; do
		run "$spill" doctor -v --timeout "$value"
		ends_with 2
		has "--timeout: '$value' is not a number of seconds"
	done
	run "$spill" doctor -v --overflow 0
	ends_with 2
	has "--overflow: the size must not be 0"
	run "$spill" doctor -v --overflow 4GB
	ends_with 2
	run "$spill" doctor -v --quick --overflow 4GiB
	ends_with 2
	has "--overflow needs the speed that --quick does not measure"
	run "$spill" doctor -v -- ""
	ends_with 2
}
