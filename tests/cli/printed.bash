# The session in data/printed.txt: runs its commands (the lines that begin with "$ ") in the folder of kept logs. Fails if they print
# anything else than is kept. With --write it keeps what they print now: for a change on purpose, after a look at the difference.
# usage: BUILD=FOLDER printed.bash [--write]
set -uo pipefail
data=$(realpath "$(dirname "$0")/data") folder=$(mktemp -d)
trap 'rm -r "$folder"' EXIT
for name in $(env | sed -n -E 's/^((SPILL|PYTORCH)[A-Z0-9_]*)=.*/\1/p') LD_PRELOAD LD_LIBRARY_PATH; do unset "$name"; done
export HOME=$folder XDG_CONFIG_HOME=$folder XDG_STATE_HOME=$folder LC_ALL=C.UTF-8
cd "$data" || exit

# A command closes each log before the next one: it needs few descriptors, however many logs there are.
spill() { (ulimit -n 6 && exec "$BUILD/spill" "$@"); }

session() {
	local line status
	while IFS= read -r line; do
		[[ $line == '$ '* ]] || continue
		printf '%s\n' "$line"
		eval "${line#'$ '}" 2>&1
		status=$?
		[ $status = 0 ] || echo "[exit status $status]"
	done <printed.txt
}

session >"$folder/printed" || exit
if [ "${1:-}" = --write ]; then
	cp "$folder/printed" printed.txt
else
	diff -U5 printed.txt "$folder/printed"
fi
