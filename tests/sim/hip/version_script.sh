#!/bin/sh
# Makes the version script of libamdhip64.so from the rows' version nodes, up to the node that a release ends with:
# version_script.sh LAST-NODE API.def MISSING.def…   A row GONE(name) is left out, whatever an earlier file says.
set -eu
last=$1
shift
gone=$(sed -nE 's/^GONE\((\w+)\)$/\1/p' "$@")
rows=$(sed -nE -e 's/^API\(([0-9_]+), [^,]*, (\w+),.*/\1 \2/p' -e 's/^MISSING\(([0-9_]+), (\w+)\)$/\1 \2/p' "$@" |
	awk -v last="$last" -v gone="$gone" '
		BEGIN { split(gone, names); for (i in names) left_out[names[i]] = 1 }
		$1 <= last && !($2 in left_out)')
before=
for node in $(printf '%s\n' "$rows" | cut -d' ' -f1 | sort -u); do
	version=hip_$(echo "$node" | tr _ .)
	printf '%s {\n\tglobal:\n' "$version"
	printf '%s\n' "$rows" | sed -n "s/^$node \(.*\)/\t\t\1;/p"
	[ -n "$before" ] || printf '\tlocal:\n\t\t*;\n'
	printf '}%s;\n' "${before:+ $before}"
	before=$version
done
