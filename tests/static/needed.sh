#!/bin/sh
# A preloaded library may need libc and nothing else, or every child process without the other dies (pitfall 1).
# usage: needed.sh LIBRARY
set -eu
needed=$(readelf -d "$1" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')
[ -n "$needed" ] || { echo "readelf found no NEEDED entry in $1"; exit 1; }
for library in $needed; do
	case $library in
	libc.so.6 | ld-linux*) ;;
	libpthread.so.0 | libdl.so.2) ;; # parts of libc, built with a glibc before 2.34
	*) echo "$1 needs $library"; exit 1 ;;
	esac
done
