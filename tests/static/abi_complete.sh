#!/bin/sh
# Fails when a constant or macro of src/vendor/abi/*.h has no row in abi_values.def: what is not listed is not proven.
# Usage: abi_complete.sh VALUES.def HEADER…
set -eu
values=$1
shift
missing=0
for header in "$@"; do
	# Handles that are pointers by cast are no integer constants, include guards are ours.
	names=$(sed -e 's,/\*.*\*/,,' "$header" | sed -nE \
		-e '/^#define [A-Za-z_0-9]+ \(\([A-Za-z_]+\)[0-9]/d' \
		-e 's/^#define ([A-Za-z_0-9]+) .*/\1/p' \
		-e 's/^[^=;(]*[[:space:]{]([A-Za-z_]\w*) = -?[0-9][0-9a-fA-Fx]*u?( \}.*|,.*)$/\1/p')
	for name in $names; do
		grep -q "^CONSTANT($name)$" "$values" && continue
		echo "${header##*/}: $name has no row in ${values##*/}"
		missing=$((missing + 1))
	done
done
echo "$missing missing"
[ "$missing" = 0 ]
