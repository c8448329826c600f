load help.bash

@test "top --once without a program says so" {
	run "$spill" top --once --filter "no program has this name"
	ends_with 0
	[[ $output == *"no process "* ]]
}

@test "top --once --json is one object on one line" {
	run "$spill" top --once --json
	ends_with 0
	[ "${#lines[@]}" -eq 1 ]
	python3 -c 'import json, sys
look = json.loads(sys.argv[1])
assert set(look) == {"time", "devices", "rows", "not_looked_into", "not_readable", "other_versions"}, look' "$output"
}

@test "top without a terminal is wrong usage" {
	run "$spill" top
	ends_with 2
	has "not a terminal; use --once or --json"
	run bash -c '"$0" top | cat; exit "${PIPESTATUS[0]}"' "$spill"
	ends_with 2
}

@test "top: a column that there is not names the nearest" {
	run "$spill" top --once --sort spiled
	ends_with 2
	has "bad --sort 'spiled'; the nearest is 'spilled'"
	run "$spill" top --once --sort zzzzzzzzz
	ends_with 2
	has "bad --sort 'zzzzzzzzz': no such column; there are pid, user, program, "
	# All of them, and no more.
	mapfile -t columns < <(sed -n '1s/.*there are //p' <<<"$output" | tr -d ' ' | tr , '\n')
	[ "${#columns[@]}" -eq 13 ]
	for column in "${columns[@]}"; do
		"$spill" top --once --sort "$column"
		"$spill" top --help | tr -s ' \n' ' ' | grep -Eq "[ -]$column(,| or| \()"
	done
	run "$spill" top --once --sort
	ends_with 2
	has "needs a value"
}

@test "top: a delay that is none" {
	run "$spill" top --once --delay 1
	ends_with 2
	has "bad --delay '1'"
	for delay in 49ms 0s 61min; do
		run "$spill" top --once --delay "$delay"
		ends_with 2
		has "not between 50ms and 1h"
	done
}

@test "top takes no operand" {
	run "$spill" top 4711
	ends_with 2
	has "unexpected argument '4711'"
}

@test "top: output that cannot be written is a finding" {
	run bash -c '"$0" top --once >/dev/full' "$spill"
	ends_with 1
	has "No space left"
	[ "$(grep -c "No space left" <<<"$output")" -eq 1 ]
	run bash -c 'timeout 20 "$0" top --json --delay 50ms >/dev/full' "$spill"
	ends_with 1
}

@test "top shows its screen before it waits, and what a key does at once" {
	TERM=linux timeout 60 python3 - "$spill" <<-'END'
		import os, pty, select, sys
		child, terminal = pty.fork()
		if child == 0:
		    os.execv(sys.argv[1], [sys.argv[1], "top", "--delay", "1h", "--filter", "no program has this name"])
		def shows(text):
		    seen = b""
		    while text not in seen:
		        assert select.select([terminal], [], [], 20)[0], f"no {text} in {seen}"
		        seen += os.read(terminal, 4096)
		shows(b"quit")
		os.write(terminal, b"h")
		shows(b"any key")
		os.write(terminal, b"  q")
		while True:
		    try:
		        if not os.read(terminal, 4096):
		            break
		    except OSError:  # how Linux says that the other end is closed
		        break
		assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
	END
}
