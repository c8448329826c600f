load help.bash

# Mistakes in files that the library accepts. `warns TEXT [WARNING…]`: the file with this text has these warnings, behind "x.conf:",
# and no others.
warns() {
	local wanted
	printf "$1" >x.conf
	shift
	wanted=$([ $# -eq 0 ] || printf 'x.conf:%s\n' "$@")
	run "$spill" check x.conf
	ends_with 0
	[ "${lines[0]}" = "x.conf: ok" ]
	diff <(printf '%s' "$wanted") <(printf '%s' "$(sed '1d; /^rule /d' <<<"$output")")
}

@test "a size without a unit is bytes, which is told where nobody means so few" {
	warns '[log]\nmax = 64\n[movable]\nmin = 2\n[managed]\nprefetch_below = 4\n' \
		"2: log.max is 64 bytes; did you mean 64GiB or 64MiB?" \
		"4: movable.min is 2 bytes; did you mean 2GiB or 2MiB?" \
		"6: managed.prefetch_below is 4 bytes; did you mean 4GiB or 4MiB?"
	warns '[rule a]\nsize = 64\nplace = managed\nmanaged.prefetch_below = 7\ncap = 65536\n[rule b]\nsize = 72..\nplace = host\n[rule c]\nsize = ..8\nplace = host\n' \
		"2: size of rule a is 64 bytes; did you mean 64GiB or 64MiB?" \
		"4: managed.prefetch_below of rule a is 7 bytes; did you mean 7GiB or 7MiB?" \
		"5: cap of rule a is 65536 bytes; did you mean 65536MiB?" \
		"7: an end of size of rule b is 72 bytes; did you mean 72GiB or 72MiB?" \
		"10: an end of size of rule c is 8 bytes; did you mean 8GiB or 8MiB?"
	# A unit says what is meant, 0 is meant, and requests of some KiB are usual.
	warns '[log]\nmax = 64B\n[movable]\nmin = 0\n[host]\nahead = 1048576\n[rule a]\nsize = 4096..65536\ncap = 64KiB\nplace = managed\nmanaged.prefetch_below = 0\n[rule b]\nsize = 0..64B\nplace = host\n'
}

@test "a section with a name and without a key" {
	warns '[device]\n[app x]\n# host.ahead = 1GiB\n[device 1]\n[app y]\nhost.ahead = 1GiB\n[device 2]\n' \
		"2: [app x] has no key, so it changes nothing" \
		"4: [device 1] has no key, so it changes nothing" \
		"7: [device 2] has no key, so it changes nothing"
}
