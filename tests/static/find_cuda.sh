#!/bin/sh
# Prints the root of the CUDA Toolkit, or nothing: CUDA_HOME, else where nvcc on PATH lives, else /usr/local/cuda.
has_headers() {
	[ -f "$1/include/cuda.h" ] && [ -f "$1/include/cudaTypedefs.h" ] && [ -f "$1/include/cuda_runtime_api.h" ]
}
nvcc=$(command -v nvcc) && nvcc=$(dirname "$(dirname "$(readlink -f "$nvcc")")")
for root in "${CUDA_HOME:-}" "${nvcc:-}" /usr/local/cuda; do
	if [ -n "$root" ] && has_headers "$root"; then
		printf '%s' "$root"
		exit 0
	fi
done
