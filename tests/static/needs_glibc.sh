#!/bin/sh
# needs_glibc.sh SOURCE: a compiler for another C library is refused while the build is configured, before it looks for anything else.
set -eu
command -v musl-gcc >/dev/null || { echo "no musl-gcc here (musl-tools)"; exit 77; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
meson=${MESON:-meson}
! CC=musl-gcc $meson setup "$folder/build" "$1" -Dtests=false --wrap-mode=nodownload >"$folder/said" 2>&1 ||
	{ echo "taken all the same: musl-gcc"; exit 1; }
grep -q 'ERROR: .*libspill needs glibc' "$folder/said" || { cat "$folder/said"; exit 1; }
! grep -q 'dependency' "$folder/said" || { echo "looked for libraries first:"; cat "$folder/said"; exit 1; }
