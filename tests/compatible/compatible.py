"""compatible.py SPILL [--freeze VERSION]: today's command reads the log and the policy of each version in this folder.

Of what it answered then all must be there still: each member, each number, and each text of one word. Sentences may change, and
members may be added. With --freeze it writes the answers of today for a new folder VERSION that has log.jsonl and policy.conf.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import log_schema  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
# The place of a file is not the version's.
PLACES = {"source", "files", "log", "path"}


def answers(spill, version):
    """What the command says of a version's files, by the names under which it is kept."""
    with tempfile.TemporaryDirectory() as folder:
        for name in ("log.jsonl", "policy.conf"):
            (pathlib.Path(folder) / name).write_bytes((HERE / version / name).read_bytes())
        os.chmod(f"{folder}/policy.conf", 0o600)
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("SPILL_", "XDG_"))}
        env = {**kept, "HOME": folder, "SPILL_POLICY": f"{folder}/policy.conf"}

        def said(*arguments):
            run = subprocess.run([spill, *arguments], cwd=folder, env=env, capture_output=True, text=True, check=False)
            if run.returncode:
                sys.exit(f"{version}: spill {' '.join(arguments)} ended with {run.returncode}:\n{run.stdout}{run.stderr}")
            return run.stdout

        said("check", "policy.conf")
        said("log", "log.jsonl")
        return {"policy.json": json.loads(said("policy", "--json", "--for", "llama-server")),
                "report.json": json.loads(said("report", "--json", "log.jsonl"))}


def lost(old, new, at):
    """What of `old` is not in `new`, as lines."""
    if isinstance(old, dict) and isinstance(new, dict):
        return [line for key, value in old.items() if key not in PLACES
                for line in (lost(value, new[key], f"{at}.{key}") if key in new else [f"{at}.{key} is gone"])]
    if isinstance(old, list) and isinstance(new, list):
        if old and isinstance(old[0], dict) and "name" in old[0]:
            named = {one["name"]: one for one in new}
            return [line for one in old for line in lost(one, named.get(one["name"], {}), f"{at}[{one['name']}]")]
        if len(old) != len(new):
            return [f"{at} had {len(old)} items, and has {len(new)}"]
        return [line for i, (a, b) in enumerate(zip(old, new)) for line in lost(a, b, f"{at}[{i}]")]
    sentences = isinstance(old, str) and isinstance(new, str) and " " in old
    return [] if sentences or (old == new and type(old) is type(new)) else [f"{at} was {old!r}, and is {new!r}"]


def against_schema(record):
    """As a reader may hold a line against today's schema. Nothing where there is no jsonschema."""
    if log_schema.jsonschema is None:
        return []
    return [error.message for error in log_schema.jsonschema.Draft202012Validator(log_schema.SCHEMA).iter_errors(record)]


def main():
    spill = os.path.abspath(sys.argv[1])
    if sys.argv[2:3] == ["--freeze"]:
        for name, answer in answers(spill, sys.argv[3]).items():
            (HERE / sys.argv[3] / name).write_text(json.dumps(answer, indent=1) + "\n", encoding="utf-8")
        return
    versions = sorted(path.name for path in HERE.iterdir() if (path / "log.jsonl").exists())
    bad = [] if versions else ["there is no version"]
    for version in versions:
        for name, answer in answers(spill, version).items():
            old = json.loads((HERE / version / name).read_text(encoding="utf-8"))
            bad += lost(old, answer, f"{version}/{name}: ")
        for path in sorted((HERE / version).glob("*.jsonl")):
            for line in path.read_text(encoding="utf-8").splitlines():
                bad += [f"{version}/{path.name}: {problem}" for problem in against_schema(json.loads(line))]
    print("\n".join(bad))
    sys.exit(bool(bad))


main()
