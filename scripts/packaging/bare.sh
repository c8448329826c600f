# shellcheck shell=bash disable=SC2154 # work, build and top are those of scripts/package, which sources this
# Bare Debian systems, made by debootstrap from the mirror that apt uses here: to install into, and old ones to build for.

# The mirror and proxy of apt, without asking the network.
mirror() { apt-get indextargets --format '$(SITE)' 'Created-By: Packages' 'Codename: bookworm' 2>/dev/null | grep -v security | head -n 1; }
with_proxy() {
	local proxy
	proxy=$(apt-config dump --format '%v' Acquire::http::Proxy)
	[ -z "$proxy" ] || export http_proxy=$proxy
	"$@"
}

# bare SUITE [PACKAGES]: a bare system in $work/SUITE, once. PACKAGES with commas.
bare() {
	local root=$work/$1
	[ ! -e "$root.done" ] || return 0
	say "debootstrap $1"
	rm -rf "$root"
	with_proxy debootstrap --variant=minbase ${2:+--include="$2"} "$1" "$root" "$(mirror)" >"$root.log" 2>&1 ||
		{ tail "$root.log"; return 1; }
	touch "$root.done"
}

# in_bare ROOT CMD…: runs there, with /proc and memory at /dev/shm. Mounts end with it.
in_bare() {
	local root=$1
	shift
	# shellcheck disable=SC2016
	unshare --mount --pid --fork --kill-child sh -c 'mount -t proc proc "$0/proc" && mount -t tmpfs tmpfs "$0/dev/shm" && exec chroot "$0" "$@"' "$root" \
		env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive \
		${http_proxy:+http_proxy="$http_proxy"} "$@"
}

# bare_copy SUITE ROOT
bare_copy() {
	bare "$1" && rm -rf "$2" && cp -a --reflink=auto "$work/$1" "$2" && cp /etc/resolv.conf "$2/etc" &&
		in_bare "$2" apt-get update -qq >"$work/update.log" 2>&1 || { cat "$work/update.log"; return 1; }
}

bare_install() {
	local root=$1
	shift
	in_bare "$root" apt-get install -y -qq --no-install-recommends "$@" >"$work/install.log" 2>&1 || { tail "$work/install.log"; return 1; }
}

# bare_list ROOT: all names there, but for what every installation of anything changes, and folders of the administrator.
bare_list() {
	(cd "$1" && find . -xdev \( -path ./proc -o -path ./var/cache -o -path ./var/log -o -path ./var/lib/apt -o -path ./var/lib/dpkg \) -prune \
		-o ! \( -type d -path './usr/local/*' \) -printf '%y %p\n') | sort
	# What dpkg knows of: also a package that is removed and not purged.
	sed -n 's/^Package: //p' "$1/var/lib/dpkg/status" | sort
}

# nothing_left ROOT: the list is the one of $work/before.
nothing_left() { bare_list "$1" >"$work/after" && diff "$work/before" "$work/after" || { echo "removal leaves this, or takes it"; return 1; }; }

# What the main job needs of the simulated GPU, by their paths in a build folder.
simulator_files=(tests/preload/prog_runtime tests/sim/kernels.so tests/sim/libcuda.so.1 tests/sim/libnvidia-ml.so.1
	tests/sim/cudart/libcudart.so.13)

# simulator_of BUILD FOLDER
simulator_of() { empty "$2" && (cd "$1" && cp -L "${simulator_files[@]}" "$2"); }
simulator() { compile "${simulator_files[@]}" && simulator_of "$build" "$work/simulator"; }

# tried ROOT SIMULATOR: the main job, with what is installed there. Nothing of it stays.
tried() {
	mkdir "$1/try" && cp "$2"/* "$top/scripts/packaging/try-installed" "$1/try" && in_bare "$1" /try/try-installed /try && rm -r "$1/try"
}

# old_root: Debian 11 (glibc 2.31) with the libraries to build with; the links in it lead inside, so that it can be a --sysroot.
old_root() {
	local root=$work/bullseye link
	[ ! -e "$root.done" ] || return 0
	bare bullseye libc6-dev,libinih-dev,libncurses-dev,libcmocka-dev,libcjson-dev || return 1
	find "$root/usr/lib64" "$root/usr/lib/$triplet" -lname '/*' | while read -r link; do ln -sfnr "$root$(readlink "$link")" "$link"; done
	mkdir -p "$work/bullseye-pkgconfig"
	for file in "$root/usr/lib/$triplet/pkgconfig/"*.pc; do sed "s|/usr|$root/usr|g" "$file" >"$work/bullseye-pkgconfig/${file##*/}"; done
	cp "$(pkg-config --variable=pcfiledir scdoc)/scdoc.pc" "$work/bullseye-pkgconfig"
}

# meson with this machine's compiler for Debian 11. -B: before this machine's own libraries.
old_meson() {
	old_root && CC="${CC:-gcc} --sysroot=$work/bullseye -B$work/bullseye/usr/lib/$triplet/" PKG_CONFIG_LIBDIR=$work/bullseye-pkgconfig meson "$@"
}

old_simulator() {
	local folder=$work/simulator-build
	[ -e "$folder/build.ninja" ] || old_meson setup "$folder" "$top" >"$folder.log" || { cat "$folder.log"; return 1; }
	ninja -C "$folder" --quiet "${simulator_files[@]}" >"$folder.log" || { tail "$folder.log"; return 1; }
	simulator_of "$folder" "$work/simulator-bullseye"
}
