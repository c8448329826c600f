#!/bin/sh
# A program that says what a runtime answers without a GPU, run with the vendor's runtime and with the
# simulator's: same output. Usage: same_without_gpu.sh PROGRAM OUR-FOLDER THEIR-LIBRARY GPU-SIGN
# GPU-SIGN is a file or library that is there when this machine has a real GPU of that vendor.
set -eu
if [ ! -e "$3" ]; then
	echo "skipped: no $3 here"
	exit 77
fi
if [ -e "$4" ] || ldconfig -p | grep -q "$4"; then
	echo "skipped: this machine has $4"
	exit 77
fi
ours=$(mktemp)
theirs=$(mktemp)
trap 'rm -f "$ours" "$theirs"' EXIT
LD_LIBRARY_PATH=$2 SPILL_SIM_DEVICES=0 "$1" >"$ours"
LD_LIBRARY_PATH=$(dirname "$3") "$1" >"$theirs"
diff "$theirs" "$ours"
echo "$(wc -l <"$ours") lines, the same"
