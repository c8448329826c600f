#!/bin/sh
# installed.sh BUILD LIB BIN DATA MAN PROFILES: `meson install` puts into an empty folder what it should, profiles as PROFILES (their
# meson.build) lists them; and the installed command takes each installed policy.
set -eu
build=$1 lib=$2 bin=$3 data=$4 man=$5 profiles=$6
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
${MESON:-meson} install -C "$build" --no-rebuild --quiet --destdir "$folder" || { echo "meson install failed"; exit 1; }
bad=0
for file in "$lib/libspill.so" "$bin/spill" "$man/man5/spill.conf.5" "$data/example.conf" \
	$(grep -o "[a-z0-9-]*\.conf" "$profiles" | sed "s|^|$data/profiles/|"); do
	[ -s "$folder$file" ] || { echo "$file is not installed"; bad=1; }
done
"$folder$bin/spill" check "$folder$data/example.conf" "$folder$data"/profiles/*.conf || bad=1
exit $bad
