#!/bin/sh
# release.sh SOURCE: scripts/release writes version and changelog into a branch and leaves the checkout alone; it refuses a version
# that is none, is lower, or has no changes.
set -eu
git -C "$1" rev-parse -q --verify HEAD >/dev/null 2>&1 || { echo "no git checkout here"; exit 77; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
unset SPILL_BUILD
tree=$folder/tree
git init -q "$tree"
cd "$tree"
git config user.name tester
git config user.email tester@localhost
mkdir scripts
cp "$1/scripts/release" "$1/scripts/lib.sh" scripts
cp "$1/meson.build" "$1/README.md" .
printf '/build*/\n' >.gitignore
printf '# Changelog\n\n## [Unreleased]\n\n### 7.8.9\n\nFixed\n- a thing\n\n## [0.0.1] - 2026-01-01\n\n- the first\n' >CHANGELOG.md
git add -A
git commit -qm start

refused() { ! scripts/release --prepare "$2" 2>"$folder/said" || { echo "taken: $2"; exit 1; }; grep -q "$1" "$folder/said" || { cat "$folder/said"; exit 1; }; }
refused usage 7.8
refused usage 07.8.9
refused usage 7.8.9-1
refused 'lower than' 0.0.9
scripts/release --prepare 7.8.9 2>"$folder/said" || { cat "$folder/said"; exit 1; }
git diff --quiet HEAD || { echo "the checkout was changed"; exit 1; }
git show release-7.8.9:meson.build | grep -qx "  version: '7.8.9'," || { echo "meson.build has another version"; exit 1; }
git show release-7.8.9:CHANGELOG.md >"$folder/changelog"
printf '# Changelog\n\n## [Unreleased]\n\n## [7.8.9] - %s\n\nFixed\n- a thing\n\n## [0.0.1] - 2026-01-01\n\n- the first\n' "$(date -u +%F)" |
	diff - "$folder/changelog" || { echo "that is another changelog"; exit 1; }
git merge -q release-7.8.9
refused 'no change below' 7.8.10
git tag v7.8.9
refused 'is released' 7.8.9
echo change >>README.md
refused 'commit first' 7.8.10
