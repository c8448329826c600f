# A session in data/, like printed.txt: runs its commands (the lines that begin with "$ ") in the folder of kept logs. Fails if they
# print anything else than is kept. With --write it keeps what they print now: for a change on purpose, after a look at the difference.
# usage: BUILD=FOLDER printed.bash [--write] [SESSION]
set -uo pipefail
data=$(realpath "$(dirname "$0")/data") folder=$(realpath "$(mktemp -d)") write=
trap 'rm -r "$folder"' EXIT
for name in $(env | sed -n -E 's/^((SPILL|PYTORCH)[A-Z0-9_]*)=.*/\1/p') LD_PRELOAD LD_LIBRARY_PATH; do unset "$name"; done
export HOME=$folder XDG_CONFIG_HOME=$folder XDG_STATE_HOME=$folder LC_ALL=C.UTF-8
cd "$data" || exit
[ "${1:-}" = --write ] && write=1 && shift
kept=$data/${1:-printed}.txt
source ../logs.bash

# A command closes each log before the next one: it needs few descriptors, however many logs there are.
spill() { (ulimit -n 6 && exec "$BUILD/spill" "$@"); }

# What a page has besides the report of each run.
page() {
	spill report --html - "$@" | sed -n 's/.*<script type="application\/json" id="data">//p' >"$folder/page"
	jq -c '(.stories[] | .lanes[], del(.lanes)), del(.made_by, .runs, .stories)' "$folder/page"
}

# How many rows its tables have.
page_rows() {
	page "$@" >/dev/null
	jq -c '.runs[0] | map_values(arrays | length)' "$folder/page"
}

session() {
	local line status
	while IFS= read -r line; do
		[[ $line == '$ '* ]] || continue
		printf '%s\n' "$line"
		eval "${line#'$ '}" 2>&1
		status=$?
		[ $status = 0 ] || echo "[exit status $status]"
	done <"$kept"
}

if [ "${1:-}" = pages ] && spill report --html - run.jsonl 2>&1 | grep 'built without the library'; then exit 77; fi
session >"$folder/printed" || exit
sed -i "s|$BUILD|BUILD|g; s|$folder|FOLDER|g" "$folder/printed"
if [ -n "$write" ]; then
	cp "$folder/printed" "$kept"
else
	diff -U5 "$kept" "$folder/printed"
fi
