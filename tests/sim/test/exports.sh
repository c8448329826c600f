#!/bin/sh
# Every function that the vendor's runtime exports, the simulated one exports under the same version node: a
# program linked with the real one must load. Usage: exports.sh OURS THEIRS PATTERN
set -eu
pattern=$3
if [ ! -e "$2" ]; then
	echo "skipped: no $2 here"
	exit 77
fi
names() {
	nm -D --defined-only --with-symbol-versions "$1" | awk '$2 ~ /[TWi]/ { print $3 }' | grep -E "$pattern" | sort
}
ours=$(mktemp)
theirs=$(mktemp)
trap 'rm -f "$ours" "$theirs"' EXIT
names "$1" >"$ours"
names "$2" >"$theirs"
missing=$(comm -13 "$ours" "$theirs")
echo "$(wc -l <"$theirs") exports, ours lacks: ${missing:-none}"
[ -s "$theirs" ] && [ -z "$missing" ]
