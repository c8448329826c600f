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
		"2: caller = libggml-cuda matches no library: a library's file has .so in its name; write libggml-cuda.so*" \
		"5: caller = */lib/libb matches no library: a library's file has .so in its name; write */lib/libb.so*"
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

@test "a section with a name and without a key" {
	warns '[device]\n[app x]\n# host.ahead = 1GiB\n[device 1]\n[app y]\nhost.ahead = 1GiB\n[device 2]\n' \
		"2: [app x] has no key, so it changes nothing" \
		"4: [device 1] has no key, so it changes nothing" \
		"7: [device 2] has no key, so it changes nothing"
}
