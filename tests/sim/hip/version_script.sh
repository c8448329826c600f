#!/bin/sh
# Makes the version script of libamdhip64.so.5 from the rows' version nodes: version_script.sh API.def MISSING.def
set -eu
rows=$(sed -nE -e 's/^API\(([0-9_]+), [^,]*, (\w+),.*/\1 \2/p' -e 's/^MISSING\(([0-9_]+), (\w+)\)$/\1 \2/p' "$@")
before=
for node in $(printf '%s\n' "$rows" | cut -d' ' -f1 | sort -u); do
	version=hip_$(echo "$node" | tr _ .)
	printf '%s {\n\tglobal:\n' "$version"
	printf '%s\n' "$rows" | sed -n "s/^$node \(.*\)/\t\t\1;/p"
	[ -n "$before" ] || printf '\tlocal:\n\t\t*;\n'
	printf '}%s;\n' "${before:+ $before}"
	before=$version
done
