load help.bash

@test "a good file" {
	printf '[device]\nlimit = 4.5GiB\n' >good.conf
	run "$spill" check good.conf
	ends_with 0
	has_line "good.conf: ok"
}

@test "an error has file, line, column and the nearest name" {
	printf '# x\n[device]\nlimt = 4GiB\n' >bad.conf
	run "$spill" check bad.conf
	ends_with 1
	has_line "bad.conf:3:1: unknown key 'limt' in [device]; the nearest is 'limit'"
}

@test "every file is checked" {
	printf '[device]\nlimit = 4GiB\n' >good.conf
	printf '[device]\nlimit = 4GB\n' >bad.conf
	run "$spill" check bad.conf good.conf missing.conf
	ends_with 1
	has "bad.conf:2:10: bad size '4GB'"
	has_line "good.conf: ok"
	has "missing.conf: no such file"
}

@test "a file's rules, in their order, each with its place" {
	printf '[rule big]\nsize = 1GiB..\nplace = managed\nprogram = x\n[device]\nlimit = 4GiB\n[rule a]\nover = host\n' >rules.conf
	run "$spill" check rules.conf rules.conf
	ends_with 0
	[ "$output" = "rules.conf: ok
rule big: size = 1GiB..; program = x; place = managed  (rules.conf:1)
rule a: over = host  (rules.conf:7)
rules.conf: ok
rule big: size = 1GiB..; program = x; place = managed  (rules.conf:1)
rule a: over = host  (rules.conf:7)" ]
	run "$spill" check --json rules.conf
	has '"ok":true,"rules":[{"name":"big","source":"rules.conf:1","keys":{"size":"1GiB..","program":"x","place":"managed"}},{"name":"a","source":"rules.conf:7","keys":{"over":"host"}}],"hidden":[],"hints":[]}'
	printf '[rule big]\nplace = managed\n[rule big]\nplace = host\n' >rules.conf
	run "$spill" check rules.conf
	ends_with 1
	[ "$output" = "rules.conf:3:7: [rule NAME] with the name 'big' is there twice; the first is in line 1" ]
}

@test "rules in an order in which one is never reached" {
	printf '[rule big]\nsize = 1GiB..\nplace = host\n[rule p]\nprogram = p\nplace = host\n[rule bigger]\nsize = 2GiB..\ncap = 4GiB\n[rule x]\nsize = 1MiB..\npriority = hot\n' >order.conf
	run "$spill" check order.conf
	ends_with 0
	has_line "order.conf:7: the rule is never reached: an earlier rule matches all of its requests, order.conf:1"
	[ "$(grep -c never <<<"$output")" -eq 1 ]
	run "$spill" check --json order.conf
	has '],"hidden":["order.conf:7: the rule is never reached: an earlier rule matches all of its requests, order.conf:1"],"hints":[]}'
}

@test "all errors of a file, each with its line" {
	printf 'limit = 1\n[device]\nlimit = 4GB\nreserv = 1\n[devcie]\nlimit = 1\n[rule a]\nplace = hots\n[rule b]\nsize = 1MiB..\n[rule c]\nplace = host\n[rule d]\nplace = host\n' >bad.conf
	run "$spill" check bad.conf
	ends_with 1
	[ "$(cut -c -48 <<<"$output")" = "bad.conf:1:1: a key outside a section: write its
bad.conf:3:10: bad size '4GB': write GiB; units 
bad.conf:4:1: unknown key 'reserv' in [device]; 
bad.conf:5:2: unknown section 'devcie'; the near
bad.conf:8:9: bad value 'hots'; it must be one o
bad.conf:9:2: the rule does nothing; it needs on" ]
	run "$spill" check --json bad.conf
	ends_with 1
	[ "$(jq -c '.[0] | .error == .errors[0], (.errors | length), .errors[5][:20], .rules, .hidden' <<<"$output")" = 'true
6
"bad.conf:9:2: the ru"
[]
[]' ]
}

@test "hints at missing units, as JSON, for each file" {
	printf '[device]\nlimit = 6\nreserve = 0\n[device 1]\nlimit = 1048576\n[host]\nlimit = 101\nnuma = 1\nreserve = 512KiB\n[app x]\ndevice.limit = 4096\n' >few.conf
	run "$spill" check few.conf
	ends_with 0
	[ "$output" = "few.conf: ok
few.conf:2: device.limit is 6 bytes; did you mean 6%, 6GiB or 6MiB?
few.conf:7: host.limit is 101 bytes; did you mean 101GiB or 101MiB?
few.conf:11: device.limit is 4096 bytes; did you mean 4096MiB?" ]
	run "$spill" check --json few.conf few.conf
	ends_with 0
	[ "$(jq -c '.[1].hints | length, .[0]' <<<"$output")" = '3
"few.conf:2: device.limit is 6 bytes; did you mean 6%, 6GiB or 6MiB?"' ]
}

@test "as JSON, whatever the bytes of a name, a value or an error are" {
	printf '[rule a\344]\ncaller = lib\344"*\nplace = host\n' >$'b\377\002.conf'
	printf '[oom]\nchain = \344\n' >bad.conf
	"$spill" check --json $'b\377\002.conf' bad.conf >out || [ $? -eq 1 ]
	[ "$(python3 -c 'import json; good, bad = json.load(open("out", encoding="utf-8")); print(ascii([good["file"], good["rules"][0]["name"], good["rules"][0]["keys"]["caller"], bad["error"][:27]]))')" \
		= "['b\ufffd\x02.conf', 'a\ufffd', 'lib\ufffd\"*', \"bad.conf:2:9: bad value '?'\"]" ]
}

@test "a file that the preload would not trust" {
	printf '[device]\nlimit = 4GiB\n' >open.conf
	chmod 666 open.conf
	run "$spill" check open.conf
	ends_with 1
	has "open.conf: others can write it"
}

@test "as JSON" {
	printf '[device]\nlimit = 4GiB\n' >good.conf
	printf '[devcie]\n' >'b"d.conf'
	run bash -c '"$0" check --json good.conf "b\"d.conf" >out; echo $?; python3 -c "
import json
for file in json.load(open(\"out\")):
    print(file[\"file\"], file[\"ok\"], file.get(\"error\"))"' "$spill"
	has_line "1"
	has_line "good.conf True None"
	has "b\"d.conf False b\"d.conf:1:2: unknown section 'devcie'; the nearest is [device]"
}

@test "the file with every key, from which the fuzzer starts, has no error" {
	cp "$BATS_TEST_DIRNAME/../fuzz/ini/full.conf" full.conf
	chmod 644 full.conf
	run "$spill" check full.conf
	ends_with 0
}

@test "no file is wrong usage" {
	run "$spill" check
	ends_with 2
	has "which file?"
}
