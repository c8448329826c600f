#!/bin/sh
# alone.sh CMD…: runs CMD where it sees no process but its own, if this machine allows that, else as it is. `spill top` shows all
# processes of a machine: those of other trees' tests, too.
for user in "" "--user --map-root-user"; do
	# shellcheck disable=SC2086 # options, or none
	unshare $user --fork --pid --mount-proc true 2>/dev/null &&
		exec unshare $user --fork --pid --mount-proc --kill-child sh -c '"$@"; exit $?' sh "$@" # sh waits for orphans
done
exec "$@"
