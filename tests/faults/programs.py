"""The programs whose runs are disturbed, each in small: a run takes a part of a second."""
import dataclasses
import os
import pathlib
import re
import signal
import sys

HERE = pathlib.Path(__file__).resolve().parent
BUILD = pathlib.Path(os.environ["BUILD"])
SIM = BUILD / "tests/sim"
# What harness.py and scenario.py need.
for name, path in {"LIBSPILL": BUILD / "libspill.so", "KERNELS": SIM / "kernels.so", "PROGRAMS": BUILD / "tests/preload",
                   "SCENARIOS": BUILD / "tests/scenarios", "SIM_PATH": f"{SIM}:{SIM / 'cudart'}:{SIM / 'hip'}"}.items():
    os.environ[name] = str(path)
sys.path[:0] = [str(HERE.parent / "preload"), str(HERE.parent / "scenarios")]
from harness import KERNELS, LIBRARY, MIB, PROGRAMS  # noqa: E402
from scenario import SCENARIOS, profile  # noqa: E402

FAULTS = BUILD / "tests/faults"
# A device that cannot have movable memory has less to fail: only the profiles that are for such devices are run on one.
PLAIN = {"SPILL_SIM_CAPS": "novmm"}
MOVES = {"SPILL_MOVABLE_ENABLE": "on", "SPILL_MOVABLE_CHUNK": "2MiB", "SPILL_DEVICE_RESERVE": "0"}
STAYS = {"SPILL_MOVABLE_ENABLE": "off", "SPILL_DEVICE_RESERVE": "0"}
TWO = {"SPILL_SIM_VRAM": "12MiB", "SPILL_SIM_DEVICES": "2"}
# Each of the files that libspill can write, and its threads. The others do not share the host's memory with tests beside them.
FILES = {"SPILL_HOST_SHARE": "yes", "SPILL_LOG_KEEP": "1", "SPILL_LOG_METRICS": "{home}/metrics", "SPILL_MOVABLE_RECORD": "{home}/record",
         "SPILL_HOST_AHEAD": "8MiB", "SPILL_MOVABLE_FOLLOW": "on"}


@dataclasses.dataclass
class Program:
    """A command, and what is known of its ways to end."""

    name: str
    command: list
    variables: dict
    vendor: str = "cuda"
    policy: str = ""
    # Exit statuses of the program where a request for memory, or another call, failed.
    gave_up: tuple = ()
    # It frees all its memory. If not: how much is left depends on where that was placed.
    frees: bool = True
    # It also resets its devices, so that libspill has nothing to keep for later.
    resets: bool = False
    # Files that it may leave beside its log, and whether there are old logs for log.keep to remove.
    files: str = "(?!)"
    old_logs: bool = False
    # The words on stdout with which it may be ended by SIGSEGV.
    may_crash: str = ""

    WRONG = re.compile(r"(?m)WRONG|^wrong$|words? wrong|wrong words|sees \d+ wrong|[1-9]\d* wrong|data wrong")

    def errors(self, stdout):
        """The vendor's errors that it printed."""
        return set(re.findall(r"\b(?:CUDA_ERROR_\w+|cudaError\w+|hipError\w+)", stdout))

    def may_end_with(self, status, stdout):
        crash = status == -signal.SIGSEGV and self.may_crash and re.search(self.may_crash, stdout)
        return status == 0 or status in self.gave_up or crash

    def saw_wrong_data(self, stdout):
        return self.WRONG.search(stdout) is not None


def llama(name, weights, kv, tokens, device, text, **variables):
    """Of 20,000 tokens of a prompt so many, with scratch memory of 4 KiB each."""
    command = [SCENARIOS / "llama_cuda", KERNELS, weights, kv, tokens, 128, 4096, 3]
    # ggml ends as llama.cpp does: by status 1, or by SIGABRT where its pool cannot grow.
    return Program(name, command, {"SPILL_SIM_VRAM": device, **variables}, policy=text, gave_up=(1, -6), frees=False)


def all_programs():
    weights = 6 * MIB
    fit = [f"{2 * MIB}:{MIB}:{2 * MIB}:4:{2 * MIB}"] * 2
    return [
        Program("demo", [PROGRAMS / "prog_runtime", "--kernels", KERNELS, "--count", 4, "--mib", 4, "--odd", 0],
                {"SPILL_SIM_VRAM": "10MiB", **MOVES}, gave_up=(1, 2)),
        Program("demo with files", [PROGRAMS / "prog_runtime", "--kernels", KERNELS, "--count", 4, "--mib", 4, "--odd", 0],
                {"SPILL_SIM_VRAM": "10MiB", **MOVES, **FILES}, gave_up=(1, 2), files=r"metrics|record|old-\d+\.jsonl|\.local|state|spill",
                old_logs=True),
        Program("mixed", [FAULTS / "mixed_cuda", KERNELS], {**TWO, **MOVES}, gave_up=(2,), resets=True),
        Program("mixed and plain", [FAULTS / "mixed_cuda", KERNELS],
                {**TWO, **STAYS, "SPILL_DEVICE_LIMIT": "11MiB", "SPILL_MEMINFO_REPORT": "limit"}, gave_up=(2,), resets=True),
        Program("mixed and managed", [FAULTS / "mixed_cuda", KERNELS],
                {**TWO, **STAYS, "SPILL_OOM_CHAIN": "trim, managed", "SPILL_DEVICE_LIMIT": "11MiB"}, gave_up=(2,), resets=True),
        # Legacy handles of chunks, by libspill's own sockets and its thread. The other process meets no fault.
        Program("export", [FAULTS / "shared", "export"], {"SPILL_SIM_VRAM": "16MiB", **MOVES}, gave_up=(2,), resets=True),
        Program("import", [FAULTS / "shared", "import"], {"SPILL_SIM_VRAM": "16MiB", **MOVES}, gave_up=(2,), resets=True),
        # spill_malloc: libspill keeps freed memory in a pool of its own.
        Program("pluggable", [PROGRAMS / "pluggable", LIBRARY, 4, 2, 2], {"SPILL_SIM_VRAM": "6MiB", **STAYS}, gave_up=(1,)),
        Program("hip", [FAULTS / "mixed_hip", KERNELS], {**TWO, "SPILL_DEVICE_RESERVE": "0"}, vendor="hip", gave_up=(2,), resets=True),
        Program("hip pluggable", [PROGRAMS / "pluggable_hip", LIBRARY, 4, 2, 2], {"SPILL_SIM_VRAM": "6MiB", **STAYS}, vendor="hip", gave_up=(1,)),
        Program("hip and managed", [FAULTS / "mixed_hip", KERNELS],
                {**TWO, **STAYS, "SPILL_SIM_CAPS": "xnack", "SPILL_OOM_CHAIN": "trim, managed", "SPILL_DEVICE_LIMIT": "11MiB"}, vendor="hip",
                gave_up=(2,), resets=True),
        llama("long context", weights, 6 * MIB, 1024, "14MiB", profile("llama-long-context", 64), **PLAIN),
        llama("growing pool", weights, 2 * MIB, 1536, "20MiB", profile("growing-pool", 512), **PLAIN),
        Program("managed", [SCENARIOS / "managed", KERNELS, 3, 2 * MIB, 4 * MIB], {"SPILL_SIM_VRAM": "8MiB", "SPILL_DEVICE_RESERVE": "0"},
                policy=profile("gh200-managed", 512), gave_up=(1, 2),
                # It reads by plain loads. Memory that is not managed, for lack of it, is not for those.
                may_crash=r"advised \d+ preferred 1001 accessed_by -2"),
        Program("experts", [SCENARIOS / "experts_hip", KERNELS, 4, MIB, 2 * MIB, 2 * MIB, 2, 2], {"SPILL_SIM_VRAM": "14MiB"}, vendor="hip",
                policy=profile("moe-experts", 512, given=(("cap = 37.5GiB", "cap = 2GiB"), ("reserve = 4.5GiB", "reserve = 1GiB"))), gave_up=(1, 2)),
        Program("fit", [SCENARIOS / "fit", KERNELS, 2, *fit],
                {"SPILL_SIM_VRAM": "12MiB", "SPILL_SIM_DEVICES": "2", "SPILL_MOVABLE_CHUNK": "2MiB"},
                policy=profile("fit-margin", 1024), gave_up=(1, 2)),
    ]
