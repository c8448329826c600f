load doctor.bash

@test "a model for llama.cpp: what it needs, and whether -ngl would be faster" {
	machine
	elf llama-server
	# 32 layers of 4 MiB, 16 MiB besides, and a cache of 4 KiB a token and layer: 32 MiB for 256 tokens.
	gguf model.gguf layers=32 layer_mib=4 output_mib=16
	simulated SPILL_SIM_VRAM=8GiB -- --root m -- ./llama-server -m model.gguf -c 256
	ends_with 0
	has "fact [device] model.gguf: 32 layers; with a cache of 256 tokens it needs 432.00 MiB, and 8.00 GiB of 1 device is free"
	simulated SPILL_SIM_VRAM=384MiB -- --root m -- ./llama-server --ctx-size 256 --model model.gguf
	ends_with 0
	has "model.gguf: 32 layers; with a cache of 256 tokens it needs 432.00 MiB, and 384.00 MiB of 1 device is free"
	has "the rest spills to host memory"
	has_not "advice" # nothing was measured
	# In two parts, on two devices, with the context of -c missing; an output that shares the embedding's weights.
	gguf part-00001-of-00002.gguf layers=32 layer_mib=4 first=0 last=16
	gguf part-00002-of-00002.gguf layers=32 layer_mib=4 output_mib=16 first=16 last=32 keys=
	simulated SPILL_SIM_VRAM=384MiB SPILL_SIM_DEVICES=2 -- --root m -- ./llama-server -m part-00001-of-00002.gguf
	has "part-00001-of-00002.gguf: 32 layers; with a cache of 4096 tokens it needs 912.00 MiB, and 768.00 MiB of 2 devices is free"
	gguf tied.gguf layers=32 layer_mib=4 embedding_mib=8
	simulated -- --root m -- ./llama-server tied.gguf -c 256
	has "tied.gguf: 32 layers; with a cache of 256 tokens it needs 424.00 MiB"
	# Drafts are no models of the program; nor is there one without a word for it.
	simulated -- --root m -- ./llama-server -md tied.gguf
	has_not "layers"
	# The advice is by the measured rates, as docs/commands.md says.
	measured SPILL_SIM_VRAM=384MiB -- --json -- ./llama-server -c 256 -m model.gguf
	printf %s "$output" >out
	run python3 - <<-'END'
		import json
		report = json.load(open("out"))
		link, = report["links"]
		found = {one["check"]: one for one in report["findings"]}
		mib = 1 << 20
		room, layer = 128, 5  # 384 less 256; 4 and the cache
		fit = room // layer
		over = (32 * layer + 16 - room) * mib / (0.93e6 * link["to_device"])
		cpu = ((32 - fit) * layer + 16) * mib / (0.75e6 * link["host_memory"]) if link["host_memory"] else over + 1
		if abs(cpu / over - 1) > 0.02:  # the rates are rounded
		    assert ("offload_layers" in found) == (cpu < over), (cpu, over, found)
		if "offload_layers" in found:
		    assert f"-ngl {fit} would probably be faster (simulated)" in found["offload_layers"]["what"], found
		    assert found["offload_layers"]["level"] == "advice"
	END
	ends_with 0
}

@test "files that are no models" {
	machine
	elf llama-server
	gguf whole.gguf layers=2 layer_mib=1
	size=$(stat -c %s whole.gguf)
	for cut in 0 3 8 23 24 40 100 300; do
		head -c $cut whole.gguf >cut.gguf
		simulated -- --root m -- ./llama-server -m cut.gguf
		ends_with 0
		has "fact [device] cut.gguf: it is "
	done
	echo "no model at all, but long enough" >text.gguf
	simulated -- --root m -- ./llama-server -m text.gguf
	has "fact [device] text.gguf: it is no GGUF file"
	# A file that is written, and not read.
	simulated -- --root m -- ./llama-server in nowhere.gguf
	ends_with 0
	has "fact [device] nowhere.gguf: No such file or directory"
	for lie in tensors=99999999999 keycount=99999999999 arraylen=18446744073709551615 layers=18446744073709551615 dims=4294967295 version=1 heads=99999999999999; do
		gguf lie.gguf layers=2 layer_mib=1 $lie
		simulated -- --root m -- ./llama-server -m lie.gguf
		ends_with 0
		has "fact [device] lie.gguf: it is damaged, or of another kind"
	done
	# A hole can have any number of strings.
	gguf holes.gguf layers=2 layer_mib=1 empty=1000000
	simulated -- --root m -- ./llama-server -m holes.gguf
	has "fact [device] holes.gguf: 2 layers"
	gguf holes.gguf layers=2 layer_mib=1 empty=17000000
	simulated -- --root m -- ./llama-server -m holes.gguf
	has "fact [device] holes.gguf: it is damaged, or of another kind"
}

@test "a model that -m names and that cannot be read" {
	machine
	elf llama-server
	simulated -- --root m -- ./llama-server -m nowhere.gguf
	ends_with 1
	has "warning [program] the model nowhere.gguf cannot be read: No such file or directory"
	has_not "nowhere.gguf: No such" # told once
	# Without a driver, too.
	run "$spill" doctor --quick --root m -- ./llama-server --model nowhere.gguf
	ends_with 1
	has "warning [program] the model nowhere.gguf cannot be read: No such file or directory"
	mkdir folder.gguf
	simulated -- --root m -- ./llama-server -m folder.gguf
	has "the model folder.gguf cannot be read: it is a folder"
	gguf part-00001-of-00002.gguf layers=32 layer_mib=4 first=0 last=16
	simulated -- --root m -- ./llama-server -m part-00001-of-00002.gguf
	has "the model part-00002-of-00002.gguf cannot be read: No such file or directory"
	gguf part-00002-of-00002.gguf layers=32 layer_mib=4 output_mib=16 first=16 last=32 keys=
	simulated -- --root m -- ./llama-server -m part-00001-of-00002.gguf
	ends_with 0
	has_not "cannot be read"
	# -m of another program may be anything.
	simulated -- --root m -- ./llama-server -m nowhere
	has_not "cannot be read"
}
