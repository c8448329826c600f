load doctor.bash

@test "before it measures it says so, on a terminal only" {
	machine
	run "$spill" doctor -v --root m
	has_not "measures"
	run python3 -c 'import pty, sys; pty.spawn(sys.argv[1:])' "$spill" doctor -v --root m </dev/null
	[[ ${lines[0]} == "spill doctor: tries the drivers and measures the link and the host's memory, for some seconds (--quick"* ]]
	run python3 -c 'import pty, sys; pty.spawn(sys.argv[1:])' "$spill" doctor -v --root m --quick </dev/null
	has "facts"
	has_not "measures"
}

@test "the link's speed, and what decode would cost over it" {
	machine
	measured -- --json
	printf %s "$output" >out
	described doctor out
	run python3 - <<-'END'
		import json
		report = json.load(open("out"))
		(link,) = report["links"]
		assert list(link) == ["vendor", "device", "simulated", "to_device", "from_device", "host_memory", "decode"], link
		assert (link["vendor"], link["device"], link["simulated"]) == ("NVIDIA", 0, True), link
		assert link["to_device"] > 0 and link["from_device"] > 0, link
		assert [one["bytes"] >> 20 for one in link["decode"]] == [512, 1024, 2048, 4096, 8192]
		for one in link["decode"]:
		    # Both are rounded; slow machines have large figures.
		    assert abs(one["ms"] * link["to_device"] * 0.93e6 / one["bytes"] - 1) < 1e-2, one
		    if link["host_memory"]:  # not where little memory is available
		        assert abs(one["cpu_ms"] * link["host_memory"] * 1e6 / one["bytes"] - 1) < 1e-2, one
		    else:
		        assert one["cpu_ms"] is None, one
		verdict = ("" if not link["host_memory"] else "slower" if link["host_memory"] <= 0.93 * link["to_device"] else
		           "faster" if link["host_memory"] >= 2 * 0.93 * link["to_device"] else "similar")
		found = {one["check"]: one["what"] for one in report["findings"]}
		assert [name for name in found if name.startswith("offload")] == ["offload_" + verdict] * bool(verdict), found
		assert found["link"].startswith("device 0 (simulated): "), found
		assert "it has no link: these are copies within the host's memory" in found["link"], found
		assert "device 0 (simulated): with 512.00 MiB, 1.00 GiB, 2.00 GiB, 4.00 GiB, 8.00 GiB of weights" in found["decode"]
		# One cost for each size, as the links have them but rounded, in both sentences.
		def costs(text, before, after):
		    return [float(cost) for cost in text.partition(before)[2].partition(after)[0].split(", ")]
		said = [(costs(found["decode"], "a token of decode takes ", " ms longer"), "ms")]
		if verdict:
		    said.append((costs(found["offload_" + verdict], "the CPU needs ", " ms a token"), "cpu_ms"))
		for told, member in said:
		    assert len(told) == 5, found
		    for cost, one in zip(told, link["decode"]):
		        assert abs(cost - one[member]) <= 0.6, (cost, one)
	END
	ends_with 0
}

@test "decode of one size; HIP's link" {
	machine
	run env "LD_LIBRARY_PATH=$BUILD/tests/sim/hip" "$spill" doctor -v --root m --overflow 3.5GiB
	ends_with 0
	has "fact [device] device 0 (simulated): "
	has " GB/s from pinned host memory, "
	has "device 0 (simulated): with 3.50 GiB of weights in host memory a token of decode takes "
	grep -qE "to read the same weights the CPU needs [0-9.]+ ms a token" <<<"$output"
}

@test "a link that cannot be measured says why, and nothing is predicted" {
	machine
	measured SPILL_SIM_CAPS=integrated --
	has "fact [device] device 0: the link was not measured: its memory is the host's, there is no link"
	has_not "a token of decode"
	measured SPILL_SIM_VRAM=8MiB --
	has "the link was not measured: the device is full"
	measured SPILL_SIM_FAIL=cuMemcpy:1:719 --
	ends_with 0
	has "fact [device] device 0: the link was not measured: copy: CUDA_ERROR_LAUNCH_FAILED"
	has_not "a token of decode"
	simulated SPILL_SIM_FAIL=cuMemcpy:1:719 -- --root m
	has_not "the link"
	simulated -- --root m --json
	has '"links":[]'
}

@test "a slow link, and a driver that hangs while it copies" {
	machine
	broken slow 30
	ends_with 1
	has "warning [device] device 0: "
	has "do:  compare the link's width"
	has_not "(simulated)"
	has "a token of decode takes"
	broken hang-copy 3
	ends_with 1
	has_line "problem [device] NVIDIA's driver did not answer within 3 s while copying to and from a device"
	has "fact [device] device 0: Slow"
	has_not "a token of decode"
	has_not "the link was not measured"
}
