#!/bin/sh
# configures.sh SOURCE: a packager's build needs libinih and ncurses only, stops at no warning of a compiler that we do not have,
# and refuses a libinih that is shared only, or takes short lines only. Nothing is downloaded.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
meson=${MESON:-meson}
source=$1 pc=$folder/pkgconfig
mkdir "$pc" "$folder/lib"
for name in inih ncursesw tinfo; do
	file=$(pkg-config --variable=pcfiledir "$name")/$name.pc
	[ ! -e "$file" ] || cp "$file" "$pc"
done
configured() { PKG_CONFIG_LIBDIR=$1 $meson setup "$folder/$2" "$3" -Dtests=false --wrap-mode=nodownload >"$folder/said" 2>&1; }

configured "$pc" plain "$source" || { cat "$folder/said"; exit 1; }
$meson introspect --buildoptions "$folder/plain" | tr '{' '\n' | grep '"name": "werror"' | grep -q '"value": false' ||
	{ echo "warnings are errors for a packager"; exit 1; }

# refused NAME MESSAGE: with inih.pc of $folder/NAME, configuring ends with this error.
refused() {
	! configured "$folder/$1" "$1" "$source" || { echo "taken all the same: a libinih that is $1"; exit 1; }
	grep -q "ERROR: .*$2" "$folder/said" || { cat "$folder/said"; exit 1; }
}

# The archive's folder, as pkg-config tells it, has the shared library only.
mkdir "$folder/shared" "$folder/short"
sed "s|^libdir=.*|libdir=$folder/lib|" "$pc/inih.pc" >"$folder/shared/inih.pc"
: >"$folder/lib/libinih.so"
refused shared 'libinih is here as a shared library only'

# The header is that of another distribution than Debian.
sed 's/ini_max_line/unknown/' "$(pkg-config --variable=includedir inih)/ini.h" >"$folder/ini.h"
sed "s|^includedir=.*|includedir=$folder|; s|^Cflags:.*|Cflags: -I$folder|" "$pc/inih.pc" >"$folder/short/inih.pc"
refused short 'libinih here takes lines of 200 bytes only'
