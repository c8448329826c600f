# Loaded by each .bats file. The build folder comes from meson as BUILD.
setup() {
	local reason
	# What this machine cannot run: lines `FILE / TEST: REASON` of tests/aarch64/left_out.
	if [ -n "${LEFT_OUT:-}" ] && reason=$(grep -F " / $BATS_TEST_DESCRIPTION: " "$LEFT_OUT"); then skip "${reason#*: }"; fi
	data=$BATS_TEST_DIRNAME/data
	cd "$BATS_TEST_TMPDIR"
	# What a developer's shell has set must not decide a test.
	for name in $(env | sed -n -E 's/^((SPILL|PYTORCH)[A-Z0-9_]*)=.*/\1/p') LD_PRELOAD LD_LIBRARY_PATH; do unset "$name"; done
	export HOME=$BATS_TEST_TMPDIR XDG_CONFIG_HOME=$BATS_TEST_TMPDIR/config LC_ALL=C.UTF-8
	spill=$BUILD/spill
}

# For the tests themselves: a machine whose python3 is an emulated one has a quicker one, too (scripts/aarch64).
python3() { "${TESTS_PYTHON:-$(type -P python3)}" "$@"; }

# The output has the text / a line that is exactly the text.
has() { [[ $output == *"$1"* ]] || { echo "no '$1' in:"; echo "$output"; return 1; }; }
has_not() { [[ $output != *"$1"* ]] || { echo "'$1' in:"; echo "$output"; return 1; }; }
has_line() { grep -qxF -- "$1" <<<"$output" || { echo "no line '$1' in:"; echo "$output"; return 1; }; }
# Standard input has no line that matches: `lacks PATTERN`. As a line of a test, `! grep` would never fail.
lacks() { ! grep -E -e "$1"; }
ends_with() { [ "$status" -eq "$1" ] || { echo "status $status, not $1:"; echo "$output"; return 1; }; }

# docs/commands.md describes each member of what `spill COMMAND --json` printed into FILE…, and no other: `described COMMAND FILE…`.
described() { python3 "$BATS_TEST_DIRNAME/members.py" "$BATS_TEST_DIRNAME/../../docs/commands.md" "$@"; }

# The data of a page of `spill report --html` on standard input.
page_data() { sed -n 's/.*<script type="application\/json" id="data">//p'; }

# Writes an ELF file by hand.
elf() { python3 "$BATS_TEST_DIRNAME/make_elf.py" "$@"; }
# ASan refuses a process into which anything else is preloaded first.
no_sanitizer() { ! grep -qa libasan "$spill" || skip "built with a sanitizer"; }
