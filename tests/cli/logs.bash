# Logs made of a few words, for tests of `spill replay`.

# A log of one program on a device of 16 GiB: `run alloc:SEQ:MIB[:CALLER[:API]] free:SEQ oom:MIB[:REFUSED_BY] …`. RANK, UUID, LEVEL (log.level), POLICY: of the start line.
run_of() {
	local order=0 now=0 word kind seq mib caller api
	printf '{"v":1,"kind":"start","t":0,"time":"2026-11-21T03:50:51.123456Z","boot":"b","host":"node7","pid":4711,"ppid":1,"program":"llama-server","exe":"/opt/llama-server",%s"version":"0.1.0","backend":"cuda","driver":13000,"devices":[{"dev":0,"name":"GPU","uuid":"%s","bytes":%s}],"policy":[%s%s]}\n' \
		"${RANK:+\"rank\":{\"RANK\":\"$RANK\"\},}" "${UUID:-GPU-0}" "$((16 << 30))" "${LEVEL:+{\"name\":\"log.level\",\"value\":\"$LEVEL\",\"source\":\"x\"\}}" "${POLICY:-}"
	for word; do
		IFS=: read -r kind seq mib caller api <<<"$word"
		order=$((order + 1)) now=$((now + 1))
		case $kind in
		alloc) printf '{"v":1,"kind":"alloc","t":%d.0,"seq":%d,"order":%d,"tid":1,"dev":0,"api":"%s","caller":"%s","bytes":%d,"ptr":"0x%x","place":"device","device_bytes":%d,"reason":"fits","rule":"default","us":1}\n' \
			$now "$seq" $order "${api:-cudaMalloc}" "${caller:-libggml-cuda.so+0x1}" $((mib << 20)) $((seq << 40)) $((mib << 20)) ;;
		free) printf '{"v":1,"kind":"free","t":%d.0,"seq":%d,"order":%d,"tid":1,"dev":0,"api":"cudaFree","caller":"x+0x1","ptr":"0x%x","bytes":1,"place":"device","reason":"free","us":1}\n' \
			$now "$seq" $order $((seq << 40)) ;;
		oom) printf '{"v":1,"kind":"oom","t":%d.0,"tid":1,"dev":0,"api":"cudaMalloc","caller":"libggml-cuda.so+0x2","bytes":%d,"free":%d,"total":%d,"live":{"device_bytes":0,"host_bytes":0,"managed_bytes":0},"rule":"default","refused_by":"%s","tried":[],"holders":[]}\n' \
			$now $((seq << 20)) "${FREE:-0}" $((16 << 30)) "${mib:-driver}"; order=$((order - 1)) ;;
		esac
	done
}

# The policy of a start line: `options NAME=VALUE …`.
options() {
	local comma='' word
	for word; do
		printf '%s{"name":"%s","value":"%s","source":"environment"}' "$comma" "${word%%=*}" "${word#*=}"
		comma=,
	done
}

# Sum lines of one call site, a second apart: `sums_of LIVE:PEAK …`, in MiB.
sums_of() {
	local at=0 word live peak
	run_of
	for word; do
		IFS=: read -r live peak <<<"$word"
		at=$((at + 1))
		printf '{"v":1,"kind":"sum","t":%d.0,"order":%d,"held":{"device_bytes":%d,"device_peak":%d,"all_bytes":%d,"all_peak":%d},"dev":0,"api":"cudaMallocAsync","caller":"libc10_cuda.so+0x1","rule":"default","live_bytes":%d,"peak_bytes":%d}\n' \
			$at $at $((live << 20)) $((peak << 20)) $((live << 20)) $((peak << 20)) $((live << 20)) $((peak << 20))
	done
}

# The log of a killed program, as if the process with that number of this machine had written it: `killed_here PID BOOT`.
killed_here() {
	sed "1s/\"pid\":[0-9]*/\"pid\":$1/; 1s/\"boot\":\"[^\"]*\"/\"boot\":\"$2\"/; 1s/\"host\":\"[^\"]*\"/\"host\":\"$(uname -n)\"/" "$BATS_TEST_DIRNAME/data/killed.jsonl"
}

# The number of a process that has ended.
ended_pid() { (exec sh -c 'echo $$'); }
