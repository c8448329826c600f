"""A strict reader of Prometheus' text format 0.0.4, with the conventions that `promtool check metrics` asks for.

usage: prometheus_text.py FILE…; with promtool in the PATH, that judges the files, too.
"""
import re
import shutil
import subprocess
import sys

NAME = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*\Z")
SAMPLE = re.compile(r'(\w+)\{((?:\w+="(?:[^"\\\n]|\\\\|\\"|\\n)*",?)*)\} ([0-9]+(?:\.[0-9]+)?)\Z')
LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
# Units that are no base units, and words that say the type or the unit again.
WRONG_WORDS = {"ms", "milliseconds", "us", "microseconds", "ns", "nanoseconds", "minutes", "hours", "kib", "mib", "gib", "kb",
               "mb", "gb", "kilobytes", "megabytes", "gigabytes", "percent", "counter", "gauge", "count"}


class Wrong(AssertionError):
    """The text is not in the format, or breaks a convention."""


def expect(truth, what):
    if not truth:
        raise Wrong(what)


def unescape(value):
    return re.sub(r"\\(.)", lambda found: {"n": "\n"}.get(found[1], found[1]), value)


def check_name(name, kind):
    expect(NAME.match(name), f"{name}: not a name by convention")
    words = name.split("_")
    expect(not WRONG_WORDS & set(words), f"{name}: not in a base unit, or names its type")
    expect((words[-1] == "total") == (kind == "counter"), f"{name}: a counter ends in _total, and nothing else does")
    for unit in ("bytes", "seconds"):
        expect(unit not in words or words[-1] == unit or words[-2:] == [unit, "total"], f"{name}: the unit comes last")


def read_sample(line):
    found = SAMPLE.match(line)
    expect(found, f"not a sample: {line}")
    name, inside, value = found.groups()
    labels = [(key, unescape(text)) for key, text in LABEL.findall(inside)]
    expect(len(dict(labels)) == len(labels), f"a label twice: {line}")
    expect(",".join(f'{key}="{text}"' for key, text in LABEL.findall(inside)) == inside, f"labels: {line}")
    return name, frozenset(labels), float(value)


def read(text):
    """{name: {frozenset of (label, value): number}}. Raises Wrong."""
    expect(text.endswith("\n"), "the last line is not whole")
    families, kind = {}, None
    lines = text.split("\n")[:-1]
    for at, line in enumerate(lines):
        if line.startswith("# HELP "):
            name = line.split(" ", 3)[2]
            expect(name not in families, f"{name}: a family in two pieces")
            expect(len(line.split(" ", 3)) == 4 and line.endswith("."), f"{name}: HELP is no sentence")
            found = re.match(rf"# TYPE {name} (gauge|counter)\Z", lines[at + 1] if at + 1 < len(lines) else "")
            expect(found, f"{name}: no TYPE behind its HELP")
            kind = found[1]
            check_name(name, kind)
            families[name] = {}
        elif line.startswith("# TYPE "):
            expect(at and lines[at - 1].startswith(f"# HELP {line.split(' ')[2]} "), f"no HELP before: {line}")
        else:
            name, labels, value = read_sample(line)
            expect(families and name == list(families)[-1], f"a sample outside of its family: {line}")
            expect(labels not in families[name], f"twice: {line}")
            families[name][labels] = value
    for name, samples in families.items():
        expect(samples, f"{name}: no sample")
    return families


def main():
    bad = False
    for path in sys.argv[1:]:
        with open(path, encoding="utf-8") as file:
            text = file.read()
        try:
            read(text)
        except Wrong as wrong:
            bad = True
            print(f"{path}: {wrong}")
        if shutil.which("promtool"):
            done = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, text=True, check=False)
            if done.returncode:
                bad = True
                print(f"{path}: promtool: {done.stdout}{done.stderr}")
    return int(bad or len(sys.argv) < 2)


if __name__ == "__main__":
    sys.exit(main())
