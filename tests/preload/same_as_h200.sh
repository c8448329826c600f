#!/bin/sh
# What the sample program prints on the simulator is what it printed on a real GPU (h200/: one NVIDIA H200, driver
# 580.159, CUDA 13.0): results, last errors, pointer types, what failed calls leave behind.
# Usage: same_as_h200.sh RECORDED PROGRAM KERNELS
set -eu
recorded=$1
output=$(mktemp)
trap 'rm -f "$output"' EXIT
"$2" --kernels "$3" --mib 6 >"$output"
diff "$recorded" "$output"
echo "$(wc -l <"$output") lines, the same"
