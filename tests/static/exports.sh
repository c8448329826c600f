#!/bin/sh
# The symbols that libspill.so exports are those of the table: no more, no fewer. usage: exports.sh LIBRARY MAP
set -eu
exported=$(nm -D --defined-only "$1" | awk '{ print $3 }' | LC_ALL=C sort)
listed=$(sed -n 's/^\t\t\(.*\);$/\1/p' "$2" | LC_ALL=C sort)
[ -n "$exported" ] || { echo "nm printed nothing for $1"; exit 1; }
[ "$exported" = "$listed" ] && exit 0
echo "exported by $1 (left) and listed in shim/hooks.def and shim/exports.def (right) differ:"
printf '%s\n' "$exported" >"${TMPDIR:-/tmp}/exported.$$"
printf '%s\n' "$listed" | diff "${TMPDIR:-/tmp}/exported.$$" - || true
rm -f "${TMPDIR:-/tmp}/exported.$$"
exit 1
