#!/bin/sh
# Version nodes of the three sonames, by hip_hcc.map.in: test_nodes.sh LIBRARY.5 LIBRARY.6 LIBRARY.7
set -eu
failed=0
names() {
	nm -D --defined-only --with-symbol-versions "$1" | awk '{ print $3 }'
}
# has LIBRARY NAME@@NODE, lacks LIBRARY NAME
has() {
	names "$1" | grep -qx "$2" || { echo "${1##*/} lacks $2" && failed=1; }
}
lacks() {
	if names "$1" | grep -q "^$2@"; then
		echo "${1##*/} has $2"
		failed=1
	fi
}
for library in "$@"; do
	has "$library" hipMalloc@@hip_4.2
	has "$library" hipMallocAsync@@hip_5.1
done
lacks "$1" hipPointerSetAttribute
lacks "$1" hipStreamBeginCapture_spt
lacks "$1" hipGetProcAddress
has "$2" hipStreamBeginCapture_spt@@hip_5.3
has "$2" hipGraphAddMemAllocNode@@hip_5.5
has "$2" hipGetDevicePropertiesR0600@@hip_6.0
has "$2" hipGetProcAddress@@hip_6.1
has "$2" hipLinkCreate@@hip_6.4
lacks "$2" hipMemGetHandleForAddressRange
lacks "$2" hipRegisterApiCallback
has "$3" hipMemGetHandleForAddressRange@@hip_6.5
has "$3" hipMemAdvise_v2@@hip_7.1
has "$3" hipGetProcAddress_spt@@hip_7.2
exit "$failed"
