"""Ordinary programs of the system run as without libspill: programs.py LIBRARY LIST [WORD…]

Runs each line of LIST, or those that contain a word, by a shell in a folder of its own with the same files, once without and once
with the library, under strace. Compares exit status, stdout, stderr, the files that are left with their contents and modes, the threads that
were begun, and the files that were opened. Then measures what the library adds to the start of a process.
"""
import collections
import hashlib
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile

LEAST = 200  # different programs
CALLS = "trace=open,openat,creat,clone,clone3,execve"
TEXT = "one two three\nfour five six\nseven eight\n\nnine\tten\none two three\n"


def make_files(folder):
    """The same names, contents and times for each run."""
    (folder / "d/e").mkdir(parents=True)
    made = {"a.txt": TEXT, "b.txt": TEXT.replace("five", "FIVE"), "n.txt": "".join(f"{i * 7919 % 100}\n" for i in range(60)),
            "t.csv": "id,name,x\n1,a,2.5\n2,b,3.5\n3,c,4.5\n", "j.json": '{"b": [1, 2, {"c": "x"}], "a": null}\n', "x.xml": "<r><i k='1'>t</i><i/></r>\n",
            "c.c": '#include <stdio.h>\nint main(void) { puts("hello"); return 0; }\n', "Makefile": "all: a.txt\n\tcat a.txt\n",
            "s.sh": "for i in 1 2 3; do echo $i; done\n", "p.py": "import sys, threading\nt = threading.Thread(target=print, args=(1,))\nt.start()\nt.join()\nsys.exit(3)\n",
            "d/f1": "f\n", "d/e/f2": "g\n", "m.1": ".TH M 1\n.SH NAME\nm \\- a page\n", "w.txt": "b a\nc b\nd c\n"}
    for name, text in made.items():
        (folder / name).write_text(text)
    (folder / "bin.dat").write_bytes(bytes(range(256)) * 64)
    os.symlink("a.txt", folder / "link")
    for path in [*folder.rglob("*"), folder]:
        os.utime(path, (1_700_000_000, 1_700_000_000), follow_symlinks=False)


def files_of(folder):
    """What is left, by name."""
    found = {}
    for path in sorted(folder.rglob("*")):
        state = path.lstat()
        content = os.readlink(path) if path.is_symlink() else hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
        found[str(path.relative_to(folder))] = (oct(state.st_mode), state.st_nlink if path.is_file() else 0, content)
    return found


def traced(text, library):
    """(threads that were begun, how often each file was opened)"""
    threads = len(re.findall(r"clone3?\(.*CLONE_THREAD.*\) = \d", text))
    opened = collections.Counter(re.findall(r'(?:open|openat|creat)\([^"]*"([^"]*)"', text))
    del opened[library]
    # Names that differ from run to run: of processes, and temporary ones of six random characters.
    names = collections.Counter()
    for name, count in opened.items():
        names[re.sub(r"/proc/\d+|/tmp/[^/\"]*|^(\./)?(zi|st|g/t)\w{6}$", "NAME", name)] += count
    return threads, names


class Runner:
    def __init__(self, library):
        self.library = library
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="spill-programs-"))
        self.plain = {"PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "HOME": str(self.root / "work"), "LC_ALL": "C.UTF-8", "TZ": "UTC",
                      "USER": "nobody", "TERM": "dumb", "TMPDIR": str(self.root / "tmp"), "SOURCE_DATE_EPOCH": "1700000000", "COLUMNS": "80",
                      "PYTHONDONTWRITEBYTECODE": "1", "GIT_AUTHOR_DATE": "1700000000 +0000", "GIT_COMMITTER_DATE": "1700000000 +0000"}

    def run(self, line, preload):
        work, temporary, trace = self.root / "work", self.root / "tmp", self.root / "trace"
        for folder in (work, temporary):
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
        make_files(work)
        # The variable is set by strace for the program alone.
        preloads = ["-E", f"LD_PRELOAD={self.library}"] if preload else []
        done = subprocess.run(["strace", "-f", "-qq", "--seccomp-bpf", "-s", "4096", "-e", CALLS, "-o", trace, *preloads, "bash", "-c", line],
                              cwd=work, env=self.plain, stdin=subprocess.DEVNULL, capture_output=True, timeout=120, check=False)
        threads, opened = traced(trace.read_text(errors="replace"), self.library)
        return {"exit status": done.returncode, "stdout": done.stdout, "stderr": done.stderr, "files": files_of(work),
                "temporary files": len(list(temporary.rglob("*"))), "threads": threads, "files opened": opened}

    def differences(self, line):
        alone, with_it = self.run(line, False), self.run(line, True)
        found = [what for what in alone if alone[what] != with_it[what]]
        if found:
            again = self.run(line, False)
            unsteady = [what for what in found if alone[what] != again[what]]
            if unsteady:
                return [f"{what} differ without libspill, too" for what in unsteady]
        return [f"{what}: {short(alone[what], with_it[what])}" for what in found]

    def preloads(self):
        """That the comparison compares something: the library is in the process."""
        done = subprocess.run(["grep", "-c", "libspill.so", "/proc/self/maps"], env={**self.plain, "LD_PRELOAD": self.library}, capture_output=True, check=False)
        return int(done.stdout) > 0


def short(left, right):
    if isinstance(left, collections.Counter):
        left, right = left - right, right - left
    elif isinstance(left, dict):
        names = {name for name in left | right if left.get(name) != right.get(name)}
        left, right = ({name: side.get(name) for name in names} for side in (left, right))
    return f"{str(left)[:300]} / {str(right)[:300]}"


def start_times(library, rounds=400):
    """Microseconds until a process that does nothing has ended: without, with a library that does nothing for it, with libspill."""
    plain = {"PATH": "/usr/bin:/bin"}
    kinds = {"nothing": plain, "libm": {**plain, "LD_PRELOAD": "libm.so.6"}, "libspill": {**plain, "LD_PRELOAD": library}}
    times = {name: [] for name in kinds}
    for i in range(rounds):
        order = list(kinds)[i % 3:] + list(kinds)[:i % 3]
        for name in order:
            child = os.posix_spawn("/bin/true", ["true"], kinds[name])
            usage = os.wait4(child, 0)[2]
            times[name].append((usage.ru_utime + usage.ru_stime) * 1e6)
    added = {name: [mine - none for mine, none in zip(times[name], times["nothing"], strict=True)] for name in ("libm", "libspill")}
    quarters = {name: statistics.quantiles(values, n=4) for name, values in added.items()}
    for name, (low, middle, high) in quarters.items():
        print(f"start of /bin/true with {name}: {middle:+.0f} us of processor time (quartiles {low:+.0f} to {high:+.0f}), paired, {rounds} rounds; "
              f"the fastest {min(times[name]) - min(times['nothing']):+.0f} us")


def main(library, path, *words):
    lines = [line for line in pathlib.Path(path).read_text(encoding="utf-8").splitlines() if line and not line.startswith("#")]
    lines = [line for line in lines if not words or any(word in line for word in words)]
    runner = Runner(library)
    if not runner.preloads():
        sys.exit("programs: the library is not preloaded here")
    ran, missing, bad = set(), [], 0
    for line in lines:
        name = line.split()[0]
        if not shutil.which(name, path=runner.plain["PATH"]):
            missing.append(name)
            continue
        found = runner.differences(line)
        ran.add(name)
        bad += bool(found)
        for difference in found:
            print(f"{line}\n    {difference}")
    shutil.rmtree(runner.root, ignore_errors=True)
    start_times(library)
    print(f"{len(ran)} programs, {bad} differ; not here: {', '.join(missing) or 'none'}")
    sys.exit(bool(bad) or (not words and len(ran) < LEAST))


if __name__ == "__main__":
    main(*sys.argv[1:])
