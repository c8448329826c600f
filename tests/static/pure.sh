#!/bin/sh
# pure.sh ARCHIVE…: the pure rooms of the policy ask for nothing but mem* and str* of libc, and have no variables. With
# -D_FORTIFY_SOURCE a compiler calls some of these by another name (clang: __memcpy_chk).
set -eu
own=$(nm --defined-only -g "$@" | awk 'NF == 3 {print $3}')
needed=$(nm -u "$@" | awk '$1 == "U" {print $2}' | sort -u)
[ -n "$own" ] && [ -n "$needed" ] || { echo "$*: no symbols to read"; exit 1; }
bad=0
for symbol in $needed; do
	case $symbol in
	mem* | str* | __mem*_chk | __str*_chk | _GLOBAL_OFFSET_TABLE_ | __stack_chk_fail | __stack_chk_guard) continue ;;
	esac
	printf '%s\n' "$own" | grep -qxF -- "$symbol" && continue
	echo "needs $symbol; the pure rooms may use mem* and str* only"
	bad=1
done
# Tables of pointers are constant but relocated (.data.rel.ro); anything else with room is a variable.
variables=$(objdump -h "$@" | awk '$2 ~ /^\.(data|bss|tdata|tbss)/ && $2 !~ /^\.data\.rel\.ro/ && $3 !~ /^0+$/')
if [ -n "$variables" ]; then
	echo "has variables:"
	echo "$variables"
	bad=1
fi
exit $bad
