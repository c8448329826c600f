"""Runs what a document shows, in its order, in one bash. usage: run_blocks.py [--keep] FILE.md…

A fenced block says behind its language what is to be done with it; one that says nothing is for readers only:

    sh run            is run; all of its commands must succeed. One that must not: COMMAND && false (what ! turns round never
                      fails for bash)
    sh run exit=2     exactly one of its commands fails, with 2
    sh run needs=X    is left out, with a word, where there is no program X (needs=X,Y: any of them)
    text output       is what the block before it printed (both streams). … stands for anything within a line, and alone in
                      a line for any lines. With `numbers` behind it, each number stands for any number
    LANGUAGE file=X   is written to the file X; its folders are made. $NAME in X is a variable's value

What readers need not see, as the set-up of an example, stands in a comment that begins with such a line: <!-- sh run

The bash begins in an empty folder, which is HOME as well, without SPILL_ variables; PATH begins with the build folder ($BUILD: meson's),
$TOP is the checkout, and the simulated GPU's libraries are in front (LD_LIBRARY_PATH). What one block sets, the next one has.
"""
import difflib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

BLOCK = re.compile(r"^(?:(?P<fence>```+)|<!-- )(?P<words>[^\n`]+)\n(?P<text>.*?)^(?(fence)(?P=fence)|-->)[ \t]*$", re.M | re.S)
TOP = pathlib.Path(__file__).resolve().parents[2]
# Each block is sourced, so that it can set variables and change folders for those behind it. What fails in it is told by line.
SHELL = """
trap 'printf "%s %s %s\\n" "${BASH_SOURCE[0]}" "$LINENO" "$?" >>"$RUN_BLOCKS/failed"' ERR
exec {answers}>&1
while read -r -u "$1" block; do
	. "$block" >"$block.out" 2>&1
	echo done >&"$answers"
done
"""


class Wrong(Exception):
    pass


def blocks(text):
    """(line, words, text) of each block that is to be used, in their order."""
    for found in BLOCK.finditer(text):
        words = found["words"].split()
        if found["fence"] or words[1:2] == ["run"]:
            yield text.count("\n", 0, found.start()) + 1, words, found["text"]


def pattern(expected, numbers):
    """The expression that the whole output has to match."""
    def line_pattern(line):
        parts = [re.escape(part) for part in line.rstrip().split("…")]
        return (".*".join(re.sub(r"\d+", r"\\d+", part) if numbers else part for part in parts)) + "[ \t]*\n"

    return "".join("(?:.*\n)*?" if line.strip() == "…" else line_pattern(line) for line in expected.splitlines())


def value(words, name):
    return next((word.split("=", 1)[1] for word in words if word.startswith(name + "=")), None)


class Shell:
    def __init__(self, folder, build):
        self.home, self.scratch, self.count = folder / "home", folder / "blocks", 0
        self.home.mkdir()
        self.scratch.mkdir()
        sim = [str(build / "tests/sim" / name) for name in ("", "cudart", "hip")]
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("SPILL", "LD_", "XDG_"))}
        # What other tests of this user hold on the host meanwhile must not count toward host.limit here.
        environment |= {"SPILL_HOST_SHARE": "no", "HOME": str(self.home), "PATH": f"{build}:{os.environ['PATH']}", "LC_ALL": "C.UTF-8", "TOP": str(TOP),
                        "BUILD": str(build), "LD_LIBRARY_PATH": ":".join(sim), "RUN_BLOCKS": str(self.scratch)}
        ours, theirs = os.pipe()
        self.bash = subprocess.Popen(["bash", "-c", SHELL, "run_blocks", str(ours)], env=environment, cwd=self.home, text=True,
                                     stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, pass_fds=[ours])
        os.close(ours)
        self.orders = os.fdopen(theirs, "w")

    def run(self, text):
        """Output, and (line, status) of each command that failed. Wrong if the block ends the shell."""
        self.count += 1
        block, failed = self.scratch / f"{self.count}.sh", self.scratch / "failed"
        failed.write_text("")
        block.write_text(text)
        print(block, file=self.orders, flush=True)
        ended = self.bash.stdout.readline() != "done\n"
        output = pathlib.Path(f"{block}.out").read_text(errors="replace")
        if ended:
            raise Wrong(f"ended the shell, with {self.bash.wait()}:\n{output}")
        found = [line.rsplit(" ", 2) for line in failed.read_text().splitlines()]
        return output, [(int(line), int(status)) for name, line, status in found if name == str(block)]

    def close(self):
        self.orders.close()
        self.bash.stdout.close()
        self.bash.wait()


def run_block(shell, words, text):
    """Its output; None if it is left out."""
    lacking = [name for name in (value(words, "needs") or "").split(",") if name and not shutil.which(name)]
    if lacking:
        return None
    if re.search(r"^\s*!\s", text, re.M):
        raise Wrong("a command behind ! can never fail: COMMAND && false")
    status = int(value(words, "exit") or 0)
    output, failed = shell.run(text)
    if [number for _, number in failed] != ([status] if status else []):
        lines = text.splitlines()
        told = [f"exit status {number}: {lines[line - 1] if line <= len(lines) else '?'}" for line, number in failed]
        raise Wrong("\n".join(told or [f"nothing failed; expected was exit status {status}"]) + f"\n{output}")
    return output


def run_document(path, folder, build):
    shell, output, ran, left_out = Shell(folder, build), None, 0, 0
    try:
        for line, words, text in blocks(path.read_text()):
            where = f"{path}:{line}: "
            try:
                if words[1:2] == ["run"]:
                    output = run_block(shell, words, text)
                    ran += output is not None
                    left_out += output is None
                    if output is None:
                        print(f"{where}left out: no {value(words, 'needs')} here")
                elif words[1:2] == ["output"] and output is not None:
                    if not re.fullmatch(pattern(text, "numbers" in words), output):
                        raise Wrong("prints otherwise:\n" + "\n".join(difflib.unified_diff(
                            text.splitlines(), output.splitlines(), "the document", "the output", lineterm="")))
                elif value(words, "file"):
                    quoted = re.sub(r"([\"\\`])", r"\\\1", value(words, "file"))
                    name, _ = shell.run(f'printf %s "{quoted}"')
                    target = shell.home / name
                    target.parent.mkdir(parents=True, exist_ok=True)
                    target.write_text(text)
            except Wrong as wrong:
                raise Wrong(f"{where}{wrong}") from None
    finally:
        shell.close()
    if not ran + left_out:
        raise Wrong(f"{path}: nothing in it is run")
    print(f"{path}: {ran} blocks ran, {left_out} left out")


def main(arguments):
    keep = arguments[:1] == ["--keep"]
    bad = 0
    for name in arguments[keep:]:
        folder = pathlib.Path(tempfile.mkdtemp(prefix="spill-docs-"))
        try:
            run_document(pathlib.Path(name), folder, pathlib.Path(os.environ["BUILD"]).resolve())
        except Wrong as wrong:
            bad += 1
            print(wrong)
        finally:
            if keep:
                print(f"left in {folder}")
            else:
                shutil.rmtree(folder, ignore_errors=True)
    return bool(bad) or not arguments[keep:]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
