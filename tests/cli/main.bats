load help.bash

# Of the table, so that a new one is asked as well.
commands=$(sed -n 's/^COMMAND(\([a-z]*\),.*/\1/p' "$BATS_TEST_DIRNAME/../../src/cli/base/commands.def")

@test "no command is wrong usage" {
	run "$spill"
	ends_with 2
	has "try: spill --help"
}

@test "--help lists every command" {
	run "$spill" --help
	ends_with 0
	for command in $commands; do has "  $command "; done
}

@test "every command's --help has its usage and examples" {
	for command in $commands; do
		run "$spill" $command --help
		ends_with 0
		has "usage: spill $command"
		has "  spill $command "
		run "$spill" help $command
		has "usage: spill $command"
	done
}

@test "help fits a terminal of 80 columns" {
	run "$spill" --help
	for command in "" $commands; do
		[ -z "$command" ] || run "$spill" $command --help
		# Examples are one line each, to be copied.
		too_long=$(sed '/^examples:/,$d' <<<"$output" | grep -E '^.{81}' || true)
		[ -z "$too_long" ] || { echo "$too_long"; return 1; }
		has "--help"
	done
}

@test "help of a command that there is not is wrong usage, and names the nearest" {
	run "$spill" help reprot
	ends_with 2
	has "unknown command 'reprot'; the nearest is 'report'"
	run "$spill" help run fast
	ends_with 2
	has "help: unexpected argument 'fast'"
	run "$spill" hlep
	has "the nearest is 'help'"
}

@test "a misspelt command names the nearest" {
	run "$spill" chekc
	ends_with 2
	has "unknown command 'chekc'; the nearest is 'check'"
	for word in zzzzzzzzzz foo x; do # of three letters two others are another word
		run "$spill" $word
		ends_with 2
		has_not nearest
	done
	run "$spill" rn
	has "the nearest is 'run'"
}

@test "an unknown option is wrong usage" {
	for command in $commands; do
		run "$spill" $command --nonsense
		ends_with 2
		has "unknown option '--nonsense'"
		has_not nearest
		run "$spill" $command -xy
		ends_with 2
		has "spill $command: unknown option '-x'"
	done
}

@test "an unknown option names the nearest, one that takes no value says so" {
	run "$spill" run --limt=4GiB -- true
	ends_with 2
	has "unknown option '--limt=4GiB'; the nearest is '--limit'"
	run "$spill" policy --fro x
	has "unknown option '--fro'; the nearest is '--for'"
	run "$spill" check --jsn
	has "unknown option '--jsn'; the nearest is '--json'"
	run "$spill" check --json -xh
	has "unknown option '-x'"
	run "$spill" check --json=all
	ends_with 2
	has "option '--json' takes no value"
}

@test "version, plain and as JSON" {
	run "$spill" version
	ends_with 0
	[[ $output =~ ^spill\ [0-9]+\.[0-9]+\.[0-9]+$ ]]
	number=${output#spill }
	run "$spill" version --json
	ends_with 0
	has_line "{\"version\":\"$number\"}"
	run "$spill" --version
	has_line "spill $number"
	run "$spill" -V
	has_line "spill $number"
	run "$spill" version x
	ends_with 2
}

@test "output that cannot be written is a finding" {
	run bash -c '"$0" version >/dev/full' "$spill"
	ends_with 1
	has "No space left"
}
