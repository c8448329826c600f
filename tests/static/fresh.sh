#!/bin/sh
# fresh.sh FILE GENERATOR [ARG…]: FILE is what the generator prints.
set -eu
file=$1
shift
"$@" | diff -u "$file" - || { echo "$file is stale: $* > $file"; exit 1; }
