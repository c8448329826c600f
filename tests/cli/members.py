"""Every member of what a command prints with --json is described in its section of docs/commands.md, and none is described that is not printed.
usage: members.py DOCUMENT COMMAND FILE…    FILE: objects that the command printed, which together have all of its members

What is described are the names in code spans from "`--json` prints one object" to the section's end. Of some members it says that they are as in
the log, or of replay as in the report: their own members are to be described there (log.schema.json beside the document, section of report).
"""
import json
import pathlib
import re
import sys

AS_ELSEWHERE = {"report": {"totals", "sum", "ooms", "live", "peak", "spilled"}, "replay": {"live", "peak", "spilled", "fit"}}


def values(text):
    """JSON values one after the other."""
    decoder, at = json.JSONDecoder(), 0
    while text[at:].strip():
        at += len(text[at:]) - len(text[at:].lstrip())
        value, at = decoder.raw_decode(text, at)
        yield value


def names(value, elsewhere=(), known=()):
    """Of all members in the value, but for those that are known within the ones that are as elsewhere."""
    if isinstance(value, list):
        return set().union(*(names(one, elsewhere, known) for one in value))
    if not isinstance(value, dict):
        return set()
    return set(value).union(*(names(inner, elsewhere, known) - (known if name in elsewhere else set()) for name, inner in value.items()))


def of_schema(node):
    """Names of all members that a JSON schema knows."""
    if isinstance(node, list):
        return set().union(*map(of_schema, node))
    if not isinstance(node, dict):
        return set()
    return set(node.get("properties", ())).union(*map(of_schema, node.values()))


def described(document, command):
    section = re.search(rf"^## spill {command}$(.*?)(?=^## |\Z)", document, re.M | re.S)[1]
    told = re.search(r"`--json` prints one object(.*?)(?=^#|\Z)", section, re.M | re.S)[1]
    return set(re.findall(r"`([a-z][a-z_]*)`", told))


path, command, *files = sys.argv[1:]
path = pathlib.Path(path)
document = path.read_text(encoding="utf-8")
known = of_schema(json.loads(path.with_name("log.schema.json").read_text(encoding="utf-8"))) | described(document, "report")
objects = [value for file in files for value in values(pathlib.Path(file).read_text(encoding="utf-8"))]
missing = names(objects, AS_ELSEWHERE.get(command, ()), known) - described(document, command)
unknown = described(document, command) - names(objects)
for name in sorted(missing):
    print(f"spill {command} --json prints {name}, which {path.name} does not describe")
for name in sorted(unknown):
    print(f"{path.name} describes {name}, which spill {command} --json did not print")
sys.exit(bool(missing or unknown))
