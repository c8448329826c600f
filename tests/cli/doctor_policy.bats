load doctor.bash

@test "settings under which nothing spills" {
	machine
	for setting in SPILL_MODE=observe SPILL_OOM_CHAIN= SPILL_OOM_CHAIN=trim; do
		run env "$setting" "$spill" doctor -v --root m
		ends_with 1
		has "a request that does not fit ends in out of memory, as without libspill"
	done
	SPILL_MODE=observe run "$spill" doctor -v --root m
	has_line "warning [environment] libspill only observes: spill.mode = observe"
	SPILL_OOM_CHAIN=trim run "$spill" doctor -v --root m
	has_line "warning [environment] oom.chain names no place but the device"
	for setting in SPILL_MODE=spill SPILL_OOM_CHAIN=host SPILL_OOM_CHAIN=demote; do
		run env "$setting" "$spill" doctor -v --root m
		ends_with 0
		has_not "as without libspill"
	done
}

@test "the policy: its problem, who may write it, what is unknown, what is hidden" {
	machine
	printf '[device]\nlimt = 4GiB\n' >p.conf
	SPILL_POLICY=p.conf run "$spill" doctor -v --root m
	ends_with 1
	has_line "problem [environment] p.conf:2:1: unknown key 'limt' in [device]; the nearest is 'limit'"
	printf '[device]\nlimit = 4GiB\n' >p.conf
	SPILL_POLICY=p.conf run "$spill" doctor -v --root m
	ends_with 0
	has "the policy is of p.conf; mode spill"
	chmod o+w p.conf
	SPILL_POLICY=p.conf run "$spill" doctor -v --root m
	ends_with 1
	has "problem [environment] p.conf: others can write it"
	has "mode observe"
	SPILL_DEVICE_LIMITS=1 run "$spill" doctor -v --root m
	ends_with 1
	has_line "warning [environment] SPILL_DEVICE_LIMITS: unknown variable; the nearest is SPILL_DEVICE_LIMIT"
	chmod o-w p.conf
	printf '[rule a]\nplace = host\n' >>p.conf
	mkdir -p config/spill
	printf '[rule a]\nover = host\n' >config/spill/spill.conf
	SPILL_POLICY=p.conf run "$spill" doctor -v --root m
	ends_with 0
	has "fact [environment] $PWD/config/spill/spill.conf:1: the rule is hidden by the rule of the same name, p.conf:3"
	SPILL=0 run "$spill" doctor -v --root m
	ends_with 1
	has_line "warning [environment] libspill is off: SPILL in the environment"
}

@test "the files that the policy is of: those that were read, in their order" {
	machine
	run "$spill" doctor -v --root m
	has "the policy is of no file; mode spill"
	mkdir -p config/spill
	printf '[host]\nlimit = 4GiB\n' >config/spill/spill.conf
	printf '[spill]\nprofile = pytorch\n' >p.conf
	SPILL_POLICY=p.conf run "$spill" doctor -v --root m
	has "the policy is of p.conf, $PWD/config/spill/spill.conf, profile pytorch; mode spill"
}

@test "a variable that wins over a file, and one that wins over nothing" {
	machine
	printf '[device]\nlimit = 4GiB\n[app llama-*]\nhost.ahead = 1GiB\n' >p.conf
	export SPILL_POLICY=p.conf
	SPILL_DEVICE_LIMIT=6GiB SPILL_DEVICE_RESERVE=1GiB run "$spill" doctor -v --root m
	ends_with 1
	has_line "warning [environment] device.limit = 6GiB from the environment wins over 4GiB from p.conf:2"
	has_not device.reserve
	SPILL_HOST_AHEAD=2GiB run "$spill" doctor -v --root m
	ends_with 0
	elf llama-server
	SPILL_HOST_AHEAD=2GiB run "$spill" doctor -v --root m -- ./llama-server
	ends_with 1
	has "host.ahead = 2GiB from the environment wins over 1GiB from p.conf:4 [app llama-*]"
}

@test "the policy is that of an interpreter's script or module" {
	machine
	python=$(command python3 -c 'import sys; print(sys.executable)')
	printf '[app train.py]\nhost.ahead = 1GiB\n[app torch.run]\nhost.ahead = 3GiB\n' >p.conf
	printf '#!%s -u\n' "$python" >train.py
	mkdir shims
	printf '#!/usr/bin/env bash\nexec %s "$@"\n' "$python" >shims/python3 # as pyenv has them
	chmod +x train.py shims/python3
	ln -s train.py other
	export SPILL_POLICY=p.conf SPILL_HOST_AHEAD=2GiB
	for command in "$python -u train.py -x" ./train.py "shims/python3 train.py" ./nowhere/train.py; do
		run "$spill" doctor -v --root m -- $command
		has "host.ahead = 2GiB from the environment wins over 1GiB from p.conf:2 [app train.py]"
	done
	printf '#!%s\n' "$PWD/shims/python3" >train.py # as env finds it, and its own arguments are no script
	run "$spill" doctor -v --root m -- ./train.py other.py
	has "wins over 1GiB from p.conf:2 [app train.py]"
	printf '#!%s -u\n' "$python" >train.py
	run "$spill" doctor -v --root m -- "$python" -um torch.run train.py
	has "wins over 3GiB from p.conf:4 [app torch.run]"
	for command in ./other "$python -c train.py" "cat train.py"; do
		run "$spill" doctor -v --root m -- $command
		has_not "wins over"
	done
}

@test "the log's folder" {
	machine
	run "$spill" doctor -v --root m
	has "fact [environment] the log will be a file like $PWD/.local/state/spill/program-"
	SPILL_LOG=off run "$spill" doctor -v --root m
	ends_with 0
	has "no log is written"
	for mode in 644 755; do
		: >plain
		chmod $mode plain
		SPILL_LOG=$PWD/plain/more/y.jsonl run "$spill" doctor -v --root m
		ends_with 1
		has_line "warning [environment] the log would be a file like $PWD/plain/more/y.jsonl, and $PWD/plain cannot be written"
	done
	run env -u HOME "$spill" doctor -v --root m
	ends_with 1
	has_line "warning [environment] there will be no log: neither XDG_STATE_HOME nor HOME names a folder for it"
	# A file system that has no room for anybody; who is not root may not even try.
	SPILL_LOG=/proc/x/y.jsonl run "$spill" doctor -v --root m
	ends_with 1
	if [ "$(id -u)" = 0 ]; then
		has_line "warning [environment] the log will be a file like /proc/x/y.jsonl; 0 B are free there"
	else
		has_line "warning [environment] the log would be a file like /proc/x/y.jsonl, and /proc cannot be written"
	fi
}

@test "the folder of log.metrics" {
	machine
	mkdir textfile
	for pattern in off textfile textfile/%e.prom; do
		SPILL_LOG_METRICS=$pattern run "$spill" doctor -v --root m
		ends_with 0
		has_not "log.metrics"
	done
	SPILL_LOG_METRICS=none/%e.prom run "$spill" doctor -v --root m
	ends_with 1
	has_line "warning [environment] log.metrics = none/%e.prom: No such file or directory"
}
