# Loaded by the tests of `spill doctor`.
load help.bash

# On the simulated GPU, with what the arguments before -- set. Speed is measured by the tests of it only.
simulated() {
	local set=()
	while [ "$1" != -- ]; do set+=("$1"); shift; done
	shift
	run env "LD_LIBRARY_PATH=$BUILD/tests/sim" "${set[@]}" "$spill" doctor -v --quick "$@"
}
measured() {
	local set=()
	while [ "$1" != -- ]; do set+=("$1"); shift; done
	shift
	run env "LD_LIBRARY_PATH=$BUILD/tests/sim" "${set[@]}" "$spill" doctor -v --root m "$@"
}
broken() { run env "LD_LIBRARY_PATH=$BUILD/tests/cli" "BROKEN_DRIVER=$1" "$spill" doctor -v --timeout "${2:-1}"; }

# Writes a model by hand.
gguf() { python3 "$BATS_TEST_DIRNAME/make_gguf.py" "$@"; }

# A machine's files, with 64 GiB available in no group, and what the tests do to them.
machine() {
	# What the shell, a container or a cluster has set must not decide a test.
	for name in $(env | sed -n -E 's/^((CUDA|NVIDIA|HIP|ROCR|NCCL|NVSHMEM|GGML|OMPI|PMI|MV2|SLURM|KUBERNETES)_[A-Z0-9_]*)=.*/\1/p') \
		WORLD_SIZE PMI_SIZE container XDG_STATE_HOME; do unset "$name"; done
	mkdir -p m/proc/self m/proc/pressure m/etc m/dev m/cg/a
	printf 'MemTotal: 99999999 kB\nMemAvailable: 67108864 kB\nSwapTotal: 1048576 kB\nSwapFree: 524288 kB\n' >m/proc/meminfo
	printf '0::/a\n' >m/proc/self/cgroup
	printf '30 20 0:1 / /cg rw - cgroup2 none rw\n' >m/proc/self/mountinfo
	: >m/cg/a/cgroup.procs
}
