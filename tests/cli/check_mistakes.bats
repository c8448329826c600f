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

@test "a function that no rule can match, with the nearest one that a rule can" {
	warns '[rule a]\napi = CUDAMALLOC\nplace = host\n[rule b]\nplace = host\napi = cudaMaloc\n' \
		"2: api = CUDAMALLOC never matches: no function that allocates device memory has this name; the nearest is cudaMalloc" \
		"6: api = cudaMaloc never matches: no function that allocates device memory has this name; the nearest is cudaMalloc"
	warns '[rule a]\napi = Malloc*Foo\nplace = host\n' \
		"2: api = Malloc*Foo never matches: no function that allocates device memory has this name; such functions are cudaMalloc, cuMemAlloc, cuMemCreate and hipMalloc"
	# Hooked, but no rule is asked: the program's own memory on the host, managed memory, frees.
	for name in cudaMallocManaged cudaMallocHost cuMemHostAlloc hipHostMalloc cudaFree cuMemFree_v2 cudaGraphAddMemAllocNode; do
		printf '[rule a]\napi = %s\nplace = host\n' "$name" >x.conf
		run "$spill" check x.conf
		has "x.conf:2: api = $name never matches"
	done
}

@test "each function that a rule can match, with and without its suffixes" {
	for name in cudaMalloc 'cudaMalloc*' '*Malloc' cudaMallocAsync cudaMallocAsync_ptsz cudaMallocPitch cudaMallocArray cuMemAlloc cuMemAlloc_v2 \
		cuMemAllocAsync cuMemCreate cuArrayCreate hipMalloc hipMallocAsync spill_malloc 'spill_?alloc' '*'; do
		warns "[rule a]\napi = $name\nplace = host\n"
	done
}

@test "a caller that is no library" {
	warns '[rule a]\ncaller = a.so+0x1a\nplace = host\n[rule b]\ncaller = /usr/lib/b.so.1+0x0\nplace = host\n' \
		"2: caller = a.so+0x1a never matches: it is compared with the library's file, without an address; write a.so" \
		"5: caller = /usr/lib/b.so.1+0x0 never matches: it is compared with the library's file, without an address; write /usr/lib/b.so.1"
	warns '[rule a]\ncaller = model.py:Model.forward\nplace = host\n' \
		"2: caller = model.py:Model.forward never matches: a rule knows the library that calls, and no Python function"
	warns '[rule a]\ncaller = libggml-cuda\nplace = host\n[rule b]\ncaller = */lib/libb\nplace = host\n' \
		"2: caller = libggml-cuda matches no library, but a program of that name: a library's file has .so in its name; write libggml-cuda.so*" \
		"5: caller = */lib/libb matches no library, but a program of that name: a library's file has .so in its name; write */lib/libb.so*"
	for name in libstdc++.so 'libggml-*' libcudart.so.12 llama-server lib '*/libx.so' /usr/bin/python3 a+0x 'a+0x*'; do
		warns "[rule a]\ncaller = $name\nplace = host\n"
	done
}

@test "quotes and variables stay as they are" {
	warns '[log]\npath = "/var/log/spill"\n[rule a]\nplace = host\ncaller = "libx.so*"\nprogram = '"'x'"'\n[app "y"]\nhost.ahead = 0\n' \
		'2: path = "/var/log/spill": the quotes count as part of the path; write it without them' \
		'5: caller = "libx.so*": the quotes count as part of the name; write it without them' \
		"6: program = 'x': the quotes count as part of the name; write it without them" \
		'7: [app "y"]: the quotes count as part of the name; write it without them'
	warns '[log]\npath = $HOME/logs/%%p.jsonl\nmetrics = /run/${USER}.prom\n[movable]\nrecord = /tmp/$_x\n[rule a]\nplace = host\ncaller = */$LIB/x.so\n' \
		'2: path = $HOME/logs/%p.jsonl: $HOME stays as it is, as a policy knows no variables; write the whole path, or ~/ for the home folder' \
		'3: metrics = /run/${USER}.prom: ${USER} stays as it is, as a policy knows no variables; write the whole path, or ~/ for the home folder' \
		'5: record = /tmp/$_x: $_x stays as it is, as a policy knows no variables; write the whole path, or ~/ for the home folder' \
		'8: caller = */$LIB/x.so: $LIB stays as it is, as a policy knows no variables; write * for any text'
	warns '[log]\npath = ~/logs/a$/$1/"b\n[rule a]\ncaller = x$.so\nplace = host\n'
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

@test "warnings are in the order of their lines" {
	warns '[app x]\n[movable]\nmin = 4MiB\nenable = off\n[log]\nmax = 64\nlevel = off\n' \
		"1: [app x] has no key, so it changes nothing" \
		"3: movable.min has no effect: movable.enable is off (line 4)" \
		"6: log.max is 64 bytes; did you mean 64GiB or 64MiB?" \
		"6: log.max has no effect: log.level is off (line 7)"
}

@test "a section with a name and without a key" {
	warns '[device]\n[app x]\n# host.ahead = 1GiB\n[device 1]\n[app y]\nhost.ahead = 1GiB\n[device 2]\n' \
		"2: [app x] has no key, so it changes nothing" \
		"4: [device 1] has no key, so it changes nothing" \
		"7: [device 2] has no key, so it changes nothing"
}

@test "keys that movable memory would need, where it is off or cannot be" {
	warns '[movable]\nmin = 4MiB\nabove = 30%%\nwait = 1s\nenable = off\nfollow = off\n[rule a]\nplace = movable\npriority = hot\n' \
		"2: movable.min has no effect: movable.enable is off (line 5)" \
		"3: movable.above has no effect: movable.enable is off (line 5)" \
		"4: movable.wait has no effect: movable.enable is off (line 5)" \
		"8: place of rule a has no effect: movable.enable is off (line 5)" \
		"9: priority of rule a has no effect: movable.enable is off (line 5)"
	warns '[oom]\nchain = trim, split, host\n[movable]\nenable = on\nmin = 4MiB\nabove = 30%%\nwait = 1s\n[rule a]\nplace = movable\ngrowth = no\n[rule b]\npriority = hot\n' \
		"4: movable.enable has no effect: oom.chain has no demote, so nothing is movable (line 2)" \
		"5: movable.min has no effect: oom.chain has no demote, so nothing is movable (line 2)" \
		"6: movable.above has no effect: oom.chain has no demote, so nothing is movable (line 2)" \
		"7: movable.wait has no effect: oom.chain has no demote, so nothing is movable (line 2)" \
		"9: place of rule a has no effect: oom.chain has no demote, so nothing is movable (line 2)" \
		"12: priority of rule b has no effect: oom.chain has no demote, so nothing is movable (line 2)"
	warns '[movable]\nenable = on\nmin = 4MiB\nabove = 30%%\nwait = 1s\n[oom]\nchain = demote\n[rule a]\nplace = movable\npriority = hot\n' \
		"4: movable.above has no effect: movable.enable is on, and not auto (line 2)"
	warns '[movable]\nenable = off\n[oom]\nchain = host\n[rule a]\nplace = host\n'
	warns '[movable]\nenable = auto\n[oom]\nchain =\n'
	warns '[movable]\nenable = no\n[oom]\nchain = host\n'
	warns '[movable]\nenable = off\n[oom]\nchain = trim, demote, host\n[app x]\noom.chain = trim, demote\n[app y]\noom.chain = auto\n' \
		"4: demote in oom.chain has no effect: movable.enable is off (line 2)" \
		"6: demote in oom.chain has no effect: movable.enable is off (line 2)"
}

@test "options of steps that oom.chain lacks" {
	warns '[managed]\npreferred = device\naccessed_by =\nread_mostly = yes\nprefetch_below = 1GiB\n[oom]\nchain = demote, host\n' \
		"2: managed.preferred has no effect: neither oom.chain nor a rule of this file makes managed memory (line 7)" \
		"3: managed.accessed_by has no effect: neither oom.chain nor a rule of this file makes managed memory (line 7)" \
		"4: managed.read_mostly has no effect: neither oom.chain nor a rule of this file makes managed memory (line 7)" \
		"5: managed.prefetch_below has no effect: neither oom.chain nor a rule of this file makes managed memory (line 7)"
	for use in '[rule a]\nover = managed\n' '[rule a]\nplace = managed\n' '[spill]\nprofile = growing-pool\n'; do
		warns "[managed]\npreferred = device\n[oom]\nchain = host\n$use"
	done
	warns '[managed]\npreferred = device\n[oom]\nchain = managed\n'
	warns '[managed]\npreferred = device\n[oom]\nchain = auto\nhonest_first = on\n'
	warns '[oom]\nchain = trim\nhonest_first = on\nhonest_window = 1s\n' \
		"3: oom.honest_first has no effect: oom.chain has no step to take afterwards (line 2)" \
		"4: oom.honest_window has no effect: oom.chain has no step to take afterwards (line 2)"
	warns '[oom]\nchain =\nhonest_first = on\n[rule a]\nover = host\n'
	warns '[oom]\nchain = trim, host\nhonest_first = on\n'
	warns '[oom]\nhonest_first = off\nhonest_window = 1s\n' \
		"3: oom.honest_window has no effect: oom.honest_first is off (line 2)"
	warns '[oom]\nhonest_first = off\nhonest_window = 1s\n[rule a]\nhonest = on\n'
}

@test "options of a log that is not written, or is elsewhere; a reserve of an integrated device" {
	warns '[log]\nlevel = off\npath = /tmp/x\nmax = 1GiB\nkeep = 5\nstderr = all\nmetrics = /tmp\n' \
		"3: log.path has no effect: log.level is off (line 2)" \
		"4: log.max has no effect: log.level is off (line 2)" \
		"5: log.keep has no effect: log.level is off (line 2)"
	warns '[log]\npath = off\nlevel = spills\nmax = 1GiB\nkeep = 5\n' \
		"3: log.level has no effect: log.path is off (line 2)" \
		"4: log.max has no effect: log.path is off (line 2)" \
		"5: log.keep has no effect: log.path is off (line 2)"
	warns '[log]\npath = /tmp/x\nlevel = spills\nmax = 1GiB\nkeep = 5\n' \
		"5: log.keep has no effect: it is for the default folder, and log.path names another place (line 2)"
	warns '[device]\nmemory = integrated\nreserve = 1GiB\n[device 1]\nreserve = 2GiB\nlimit = 3GiB\n' \
		"3: device.reserve has no effect: device.memory is integrated, so nothing is kept free (line 2)" \
		"5: device 1.reserve has no effect: device.memory is integrated, so nothing is kept free (line 2)"
}

@test "an option of [app NAME] may let a key have an effect" {
	warns '[movable]\nenable = off\nmin = 4MiB\n[app x]\nmovable.enable = auto\n[rule a]\npriority = hot\n'
	warns '[movable]\nmin = 4MiB\n[app x]\nmovable.enable = off\nmovable.min = 8MiB\nmovable.wait = 1s\n[app *]\nmovable.above = 10%%\n' \
		"5: movable.min has no effect: movable.enable is off (line 4)" \
		"6: movable.wait has no effect: movable.enable is off (line 4)"
	warns '[movable]\nenable = off\n[app x]\nmovable.min = 8MiB\n[app y]\nmovable.enable = off\nmovable.wait = 1s\n' \
		"4: movable.min has no effect: movable.enable is off (line 2)" \
		"7: movable.wait has no effect: movable.enable is off (line 6)"
	warns '[movable]\nenable = on\n[app x]\nmovable.enable = off\nmovable.wait = 1s\n' \
		"5: movable.wait has no effect: movable.enable is off (line 4)"
	warns '[movable]\nenable = off\n[app x]\nmovable.wait = 1s\n[app x*]\nmovable.enable = on\n'
}

@test "an option that a section [app NAME] sets for the same programs, and wins" {
	warns '[app llama-*]\ndevice.limit = 1GiB\nhost.ahead = 1GiB\n[app llama-server]\ndevice.limit = 2GiB\nhost.limit = 1GiB\n' \
		"5: device.limit has no effect: [app llama-*] sets it for the same programs, and wins (line 2)"
	warns '[device]\nlimit = 1GiB\nreserve = 1GiB\n[device 1]\nlimit = 3GiB\n[app *]\ndevice.limit = 2GiB\n' \
		"2: device.limit has no effect: [app *] sets it for the same programs, and wins (line 7)"
	warns '[app llama-server]\ndevice.limit = 1GiB\n[app llama-*]\ndevice.limit = 2GiB\n[device]\nlimit = 3GiB\n'
}

@test "keys of a rule that its other keys rule out" {
	warns '[rule a]\nplace = refuse\nover = host\ncap = 1GiB\npriority = cold\nprefetch = on\nhonest = on\nmanaged.read_mostly = yes\nsize = 1GiB..\n' \
		"3: over of rule a has no effect: the rule has place = refuse" \
		"4: cap of rule a has no effect: the rule has place = refuse" \
		"5: priority of rule a has no effect: the rule has place = refuse" \
		"6: prefetch of rule a has no effect: the rule has place = refuse" \
		"7: honest of rule a has no effect: the rule has place = refuse" \
		"8: managed.read_mostly of rule a has no effect: the rule has place = refuse"
	warns '[rule a]\nover = refuse\nhonest = on\ncap = 1GiB\n' \
		"3: honest of rule a has no effect: over = refuse is out of memory at once"
	warns '[rule a]\nplace = device\nover = host\nprefetch = on\nmanaged.preferred = device\nmanaged.accessed_by =\nmanaged.read_mostly = yes\n' \
		"4: prefetch of rule a has no effect: neither place nor over is managed" \
		"5: managed.preferred of rule a has no effect: neither place nor over is managed" \
		"6: managed.accessed_by of rule a has no effect: neither place nor over is managed" \
		"7: managed.read_mostly of rule a has no effect: neither place nor over is managed"
	warns '[oom]\nchain = host\n[rule a]\nplace = split\nprefetch = on\n' \
		"5: prefetch of rule a has no effect: neither oom.chain nor a rule of this file makes managed memory (line 2)"
	warns '[oom]\nchain = host\n[rule a]\nplace = managed\nprefetch = on\n'
	warns '[rule a]\nplace = managed\nprefetch = on\nmanaged.prefetch_below = 1GiB\n' \
		"4: managed.prefetch_below of rule a has no effect: the rule's prefetch decides"
	warns '[rule a]\nplace = host\nover = refuse\nhonest = off\nprefetch = off\n'
	# What a rule falls back on may need these.
	warns '[rule a]\nplace = host\nprefetch = on\ncap = 1GiB\npriority = hot\nhonest = on\ndevice = 0\n[rule b]\nplace = managed\nover = host\nprefetch = on\ndevice = 1\n[rule c]\nplace = host\nover = managed\nprefetch = on\nhonest = on\n'
}

@test "what we ship has no such mistake" {
	for profile in "$BATS_TEST_DIRNAME"/../../policy/profiles/*.conf; do
		cp "$profile" x.conf
		chmod 644 x.conf
		warns "$(sed 's/%/%%/g; s/\\/\\\\/g' x.conf)"
	done
}

@test "as JSON, among the hints; also of a file with an error, but not what other keys rule out" {
	printf '[log]\nmax = 64\nlevel = off\n[rule a]\napi = x\nplace = host\nwrong = 1\n[app x]\n[app y]\nwrong = 1\n' >x.conf
	run "$spill" check --json x.conf
	ends_with 1
	[ "$(jq -c '.[0] | .error, .errors, .hints, .rules' <<<"$output")" = '"x.conf:7:1: unknown key '"'wrong'"' in [rule NAME]; the nearest is '"'rank'"'"
["x.conf:7:1: unknown key '"'wrong'"' in [rule NAME]; the nearest is '"'rank'"'","x.conf:10:1: unknown key '"'wrong'"' in [app NAME]; the nearest is '"'log.max'"'"]
["x.conf:2: log.max is 64 bytes; did you mean 64GiB or 64MiB?","x.conf:5: api = x never matches: no function that allocates device memory has this name; such functions are cudaMalloc, cuMemAlloc, cuMemCreate and hipMalloc","x.conf:8: [app x] has no key, so it changes nothing"]
[]' ]
}
