#!/bin/sh
# installed.sh BUILD LIB BIN DATA MAN PROFILES LIBS_32: `meson install` puts into an empty folder what it should: profiles as
# PROFILES (their meson.build) lists them, each manual page that was built, completions, spill.pc, the documents with an example
# for systemd, and into LIBS_32 (folders with commas; empty: none) a library for 32-bit programs. The installed command takes
# each installed policy, and names its library so that each finds its own.
set -eu
build=$1 lib=$2 bin=$3 data=$4 man=$5 profiles=$6 libs_32=$7
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
${MESON:-meson} install -C "$build" --no-rebuild --quiet --destdir "$folder" || { echo "meson install failed"; exit 1; }
share=${data%/spill}
bad=0
pages=$(cd "$build" && ls docs/man/*.[1-9] policy/*.[1-9] | sed "s|.*/\(.*\([1-9]\)\)\$|$man/man\2/\1|")
docs=$share/doc/libspill
for file in "$lib/libspill.so" "$bin/spill" "$man/man5/spill.conf.5" "$man/man5/spill-log.5" "$data/example.conf" $pages \
	"$lib/pkgconfig/spill.pc" "$docs/LICENSE" "$docs/NOTICE" "$docs/README.md" "$docs/docs/recipes/README.md" \
	"$share/bash-completion/completions/spill" "$share/zsh/site-functions/_spill" "$share/fish/vendor_completions.d/spill.fish" \
	$(grep -o "[a-z0-9-]*\.conf" "$profiles" | sed "s|^|$data/profiles/|"); do
	[ -s "$folder$file" ] || { echo "$file is not installed"; bad=1; }
done
"$folder$bin/spill" check "$folder$data/example.conf" "$folder$data"/profiles/*.conf || bad=1
for variable in preload policies; do
	path=$(PKG_CONFIG_PATH=$folder$lib/pkgconfig pkg-config --variable=$variable spill) || bad=1
	[ -e "$folder$path" ] || { echo "pkg-config --variable=$variable spill: '$path' is not there"; bad=1; }
done
preloaded=$(sed -n 's/^Environment=LD_PRELOAD=//p' "$folder$docs/docs/examples/systemd-drop-in.conf") || bad=1
[ -e "$folder$preloaded" ] || { echo "the drop-in for systemd loads '$preloaded', which is not there"; bad=1; }
for folder_32 in $(echo "$libs_32" | tr , ' '); do
	[ "$(od -An -tx1 -N5 "$folder$folder_32/libspill.so" | tr -d ' ')" = 7f454c4601 ] || {
		echo "$folder_32/libspill.so is no 32-bit library"
		bad=1
	}
done
# A sanitizer's runtime must come first.
if ! grep -qa libasan "$folder$bin/spill"; then
	named=$("$folder$bin/spill" run env | sed -n 's/^LD_PRELOAD=//p')
	case $lib in
	*/lib/*-linux-gnu | */lib64) [ "$named" = "$folder${bin%/*}/\$LIB/libspill.so" ] || {
		echo "LD_PRELOAD is $named"
		bad=1
	} ;;
	esac
fi
exit $bad
