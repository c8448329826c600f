# shellcheck shell=bash disable=SC2034 # its variables are used by the scripts that source it
# Shared by the commands in this folder: set-up on a bare Debian 12, the build, and small words. Sourced, never run.
set -euo pipefail
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
build=${SPILL_BUILD:-$top/build}

say() { printf '%s\n' "· $*" >&2; }
die() { printf '%s\n' "${0##*/}: $*" >&2; exit 1; }

# Debian's python3 before any other: the modules that the tests need are its. A wrapper for several versions (pyenv) would also
# take ten times as long for each start.
debian_first() { PATH=/usr/bin:$PATH; }

as_root() { if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi; }

# The only list of needed packages, by their names in Debian 12.
packages_build=(gcc libc6-dev meson ninja-build pkg-config python3 libinih-dev libcmocka-dev libcjson-dev libamdhip64-dev
	libjs-dygraphs libncurses-dev scdoc)
packages_test=(bats binutils libc-bin groff-base bash-completion zsh fish musl-tools openmpi-bin python3-jsonschema python3-pyte python3-yaml)
# The loader for a 32-bit program of the tests.
[ "$(uname -m)" != x86_64 ] || packages_test+=(libc6-i386)
# Of one step: munge comes with a service, which Debian starts.
packages_slurm=(munge slurm-client slurmctld slurmd)
# scripts/aarch64 builds on x86-64 only.
packages_aarch64=()
[ "$(uname -m)" != x86_64 ] || packages_aarch64=(gcc-aarch64-linux-gnu)
packages_check=(git clang clang-format clang-tidy cppcheck shellcheck chromium)
# Of the steps coexist and programs. The programs are those that a machine has; these are some of them.
packages_coexist=(libjemalloc2 libmimalloc2.0 libtcmalloc-minimal4 libeatmydata1 faketime fakeroot proot heaptrack gdb valgrind strace)
packages_programs=(strace bzip2 file jq man-db unzip zip)
# Of scripts/package.
packages_package=(git xz-utils debhelper lintian debootstrap rpm makepkg pacman-package-manager libarchive-tools zstd buildah)

# Installs missing packages and names them. If none is missing, it does nothing and needs no network.
need() {
	local missing=() name
	for name in "$@"; do
		dpkg-query -W -f '${Status}' "$name" 2>/dev/null | grep -q 'install ok installed' || missing+=("$name")
	done
	[ ${#missing[@]} -gt 0 ] || return 0
	say "installing from Debian's packages: ${missing[*]}"
	as_root env DEBIAN_FRONTEND=noninteractive apt-get update -qq >&2 || die "apt-get update failed"
	as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" \
		>/tmp/spill-apt.$$ 2>&1 || { cat /tmp/spill-apt.$$ >&2; die "installing ${missing[*]} failed"; }
	rm -f /tmp/spill-apt.$$
}

# meson of Debian where there is one on PATH that is not Debian's and too old. Of what is named, or all. Warnings are errors here,
# not for packagers: their compilers know warnings that ours do not.
compile() {
	if [ ! -f "$build/build.ninja" ]; then
		say "configuring $build"
		meson setup "$build" "$top" --werror >"$build.log" 2>&1 || { cat "$build.log" >&2; die "meson setup failed"; }
		rm -f "$build.log"
	fi
	say "building"
	ninja -C "$build" --quiet "$@" >&2 || die "the build failed"
}
