load help.bash

@test "nothing set: every default, and where it was looked for" {
	run "$spill" policy --for llama-server
	has_line "policy for llama-server, from these sources (the first wins):"
	has_line "  $PWD/config/spill/llama-server.conf: not found"
	has_line "  $PWD/config/spill/spill.conf: not found"
	has "  /etc/spill/spill.conf: "
	[ -e /etc/spill/spill.conf ] || { has_line "device.limit = none  (default)"; ends_with 0; }
}

@test "each value with its source" {
	mkdir -p config/spill
	printf '[device]\nlimit = 4GiB\nreserve = 1MiB\n[app llama-*]\ndevice.limit = 10GiB\n' >config/spill/spill.conf
	printf '[host]\nlimit = 1GiB\n[device 1]\nreserve = 3MiB\n' >config/spill/llama-server.conf
	export SPILL_OOM_CHAIN= SPILL_LOG=off
	run "$spill" policy --for /opt/bin/llama-server
	ends_with 0
	has_line "policy for llama-server, from these sources (the first wins):"
	has_line "  $PWD/config/spill/spill.conf: read"
	has_line "device.limit = 10GiB  ($PWD/config/spill/spill.conf:5 [app llama-*])"
	has_line "device.reserve = 1MiB  ($PWD/config/spill/spill.conf:3)"
	has_line "device 1.reserve = 3MiB  ($PWD/config/spill/llama-server.conf:4)"
	has_line "host.limit = 1GiB  ($PWD/config/spill/llama-server.conf:2)"
	has_line "oom.chain =  (environment SPILL_OOM_CHAIN)"
	has_line "log.path = off  (environment SPILL_LOG)"
	unset SPILL_LOG
	SPILL_LOG_PATH=off run "$spill" policy
	ends_with 0
	has_line "policy for any program, from these sources (the first wins):"
	has_line "device.limit = 4GiB  ($PWD/config/spill/spill.conf:2)"
	has_line "log.path = off  (environment SPILL_LOG_PATH)"
	has_not llama-server
}

@test "as the preload finds it" {
	printf '[app env]\ndevice.limit = 3GiB\n[app *]\ndevice.limit = 2GiB\n' >p.conf
	SPILL_POLICY=p.conf run "$spill" policy --for env
	has_line "  p.conf: read"
	has_line "device.limit = 3GiB  (p.conf:2 [app env])"
	SPILL_POLICY=p.conf run "$spill" policy
	has_line "device.limit = 2GiB  (p.conf:4 [app *])"
}

@test "the rules of all files for a program, in effective order" {
	mkdir -p config/spill
	printf '[rule small]\nsize = ..1MiB\nplace = device\n[rule his]\nprogram = b*\nplace = host\n' >config/spill/spill.conf
	printf '[rule all]\nover = split\n[rule small]\nsize = ..2MiB\npriority = hot\n' >p.conf
	export SPILL_POLICY=p.conf
	run "$spill" policy --for a
	ends_with 0
	has "
rules in order (the first that matches a request wins):
rule all: over = split  (p.conf:1)
rule small: size = ..2MiB; priority = hot  (p.conf:3)"
	has_line "$PWD/config/spill/spill.conf:1: the rule is hidden by the rule of the same name, p.conf:3"
	has_line "p.conf:3: the rule is never reached: an earlier rule matches all of its requests, p.conf:1"
	has_not "rule his"
	has_line "rules for other programs or ranks, by their keys program and rank: 1"
	run "$spill" policy --for bc --json
	has '"rules":[{"name":"all","source":"p.conf:1","keys":{"over":"split"}},{"name":"small","source":"p.conf:3","keys":{"size":"..2MiB","priority":"hot"}},{"name":"his","source":"'"$PWD"'/config/spill/spill.conf:4","keys":{"program":"b*","place":"host"}}],"hidden":["p.conf:3: the rule is never reached: an earlier rule matches all of its requests, p.conf:1","'"$PWD"'/config/spill/spill.conf:1: the rule is hidden by the rule of the same name, p.conf:3","'"$PWD"'/config/spill/spill.conf:4: the rule is never reached: an earlier rule matches all of its requests, p.conf:1"],"other_rules":0,"hints":[]}'
	unset SPILL_POLICY
	rm config/spill/spill.conf
	run "$spill" policy --for a
	has_not rule
}

@test "a profile is the last source, with its lines" {
	text=$BATS_TEST_DIRNAME/../../policy/profiles/gh200-managed.conf
	at() { grep -n "^$1" "$text" | cut -d: -f1; }
	printf '[spill]\nprofile = gh200-managed\n[rule mine]\nsize = ..1MiB\nplace = device\n' >p.conf
	SPILL_POLICY=p.conf run "$spill" policy --for a
	ends_with 0
	has_line "spill.profile = gh200-managed  (p.conf:2)"
	has_line "  profile gh200-managed: read"
	has_line "host.limit = 90%  (profile gh200-managed:$(at limit))"
	has "
rule mine: size = ..1MiB; place = device  (p.conf:3)
rule all-managed: "
	has "  (profile gh200-managed:$(at "\[rule all"))"
	SPILL_PROFILE=gh200 run "$spill" policy --for a
	ends_with 1
	has "SPILL_PROFILE: bad value 'gh200'; it must be one of none, llama-long-context, growing-pool, gh200-managed, moe-experts, fit-margin"
}

@test "a refused file: what holds then, and that no more was read" {
	printf '[device]\nlimit = 4GiB\n[app other]\ndevice.limti = 1\n' >bad.conf
	SPILL_POLICY=bad.conf run "$spill" policy --for x
	ends_with 1
	has_line "  bad.conf: refused"
	has_line "bad.conf:4:1: unknown key 'device.limti' in [app NAME]; the nearest is 'device.limit'"
	has_line "device.limit = none  (default)"
	has_line "spill.mode = observe  (problem)"
	has_not "/etc/spill"
	SPILL_POLICY=missing.conf run "$spill" policy
	ends_with 1
	has_line "  missing.conf: not found"
	has "missing.conf: no such file"
}

@test "an unknown variable is a finding; a switch that is off is told" {
	SPILL_DEVICE_LIMITS=1 run "$spill" policy
	ends_with 1
	has_line "SPILL_DEVICE_LIMITS: unknown variable; the nearest is SPILL_DEVICE_LIMIT"
	SPILL=0 run "$spill" policy
	has "libspill is off"
}

@test "a size of memory without a unit is told where nobody means bytes" {
	SPILL_DEVICE_LIMIT=6 SPILL_LOG_MAX=100 run "$spill" policy
	ends_with 0
	has_line "device.limit = 6  (environment SPILL_DEVICE_LIMIT)"
	[ "${lines[-2]}" = "device.limit is 6 bytes; did you mean 6%, 6GiB or 6MiB?" ]
	[ "${lines[-1]}" = "log.max is 100 bytes; did you mean 100GiB or 100MiB?" ]
	[ "$(SPILL_DEVICE_1_LIMIT=2000 SPILL_HOST_AHEAD=5 "$spill" policy --json | jq -c .hints)" \
		= '["host.ahead is 5 bytes; did you mean 5GiB or 5MiB?","device 1.limit is 2000 bytes; did you mean 2000MiB?"]' ]
}

@test "as JSON, values whole" {
	long=/$(printf 'x%.0s' {1..600})
	printf '[log]\npath = %s\n[app "*]\nhost.ahead = 1GiB\n' "$long" >p.conf
	SPILL_POLICY=p.conf SPILL_MODE=off SPILL_NONSENSE=1 SPILL_MORE=1 run "$spill" policy --json --for '"q'
	ends_with 1
	printf %s "$output" >out
	run python3 -c '
import json
facts = json.load(open("out"))
print(facts["program"], facts["disabled"], facts["problem"], len(facts["warnings"]))
print(facts["files"][0])
options = {option["name"]: option for option in facts["options"]}
print(len(options["log.path"]["value"]), options["host.ahead"], options["spill.mode"])'
	has_line "\"q False None 2"
	has_line "{'path': 'p.conf', 'state': 'read'}"
	has_line "601 {'name': 'host.ahead', 'value': '1GiB', 'source': 'p.conf:4 [app \"*]'} {'name': 'spill.mode', 'value': 'off', 'source': 'environment', 'variable': 'SPILL_MODE'}"
	SPILL_POLICY=missing.conf run "$spill" policy --json
	ends_with 1
	has '"program":null,"disabled":false,"problem":"missing.conf: no such file'
}

@test "wrong usage" {
	run "$spill" policy llama-server
	ends_with 2
	has "unexpected argument 'llama-server'; use --for PROGRAM"
	run "$spill" policy --for
	ends_with 2
	has "option '--for' needs a value"
	run "$spill" policy --for ''
	ends_with 2
	run "$spill" policy --for /bin/
	ends_with 2
	has "'/bin/' is not the name of a program"
}
