"""Every row of policy/options/options.def is an option everywhere: in docs/options.md, the manual page, the parser, the variables,
`spill policy`, the example policy and the fuzzer's, and every key of a rule likewise.
usage: option_table.py SPILL OPTIONS.DEF OPTIONS.MD FULL.CONF EXAMPLE.CONF SPILL.CONF.5

Reads the table's text itself: what the program makes of it is what is asked for.
"""
import ast
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

spill, table, document, example, sample, manual = (pathlib.Path(path).resolve() for path in sys.argv[1:])
STRING = r'("(?:[^"\\]|\\.)*"(?:\s*"(?:[^"\\]|\\.)*")*)'
text = re.sub(r"/\*.*?\*/", "", table.read_text(), flags=re.S)
bad = []


def strings(pattern):
    rows = [[row] if isinstance(row, str) else row for row in re.findall(pattern, text)]
    return [[ast.literal_eval(f"({part})") if part[0] == '"' else part for part in row] for row in rows]


# section, key, kind, words, initial; section, key; key of [device N].
options = strings(rf"\bOPTION\({STRING},\s*{STRING},\s*(\w+),\s*[\w.]+,\s*{STRING},\s*{STRING},")
device_keys = [row[0] for row in strings(rf"\bDEVICE\({STRING},\s*(\w+)")]
# key, kind, bit, words, of [rule NAME].
rules = strings(rf"\bRULE\({STRING},\s*(\w+),\s*(\w+),\s*[\w.]+,\s*{STRING},\s*{STRING},")
# A value that is not the default, by kind; with a number of the row's own, so that two rows with one field are seen.
OTHER = {"SIZE": "{}MiB", "SHARE": "{}MiB", "LIMIT": "{}MiB", "PERCENT": "{}%", "CHUNK": "{}MiB",
         "TIME": "{}us", "NUMBER": "{}", "CHAIN": "host, split", "PATH": "/tmp/option-table/%e",
         "BYTES": "{}MiB", "RANGE": "{}MiB..", "GLOB": "a{}*", "SYMBOL": "a{}*", "NAME": "*", "DEVICES": "{}", "RANKS": "0, {}..", "NODE": "{}"}


def complain(what):
    bad.append(what)
    print(what)


def expect(truth, what):
    if not truth:
        complain(what)


def run(*arguments, **variables):
    """From an empty home and environment, as rank 0 of a job: exit status, standard output."""
    environment = {"HOME": "/nonexistent", "PATH": os.environ["PATH"], "RANK": "0", **variables}
    for name in ("ASAN_OPTIONS", "UBSAN_OPTIONS", "LLVM_PROFILE_FILE"):
        if name in os.environ:
            environment[name] = os.environ[name]
    done = subprocess.run([spill, *arguments], env=environment, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout


def effective(**variables):
    status, out = run("policy", "--json", **variables)
    facts = json.loads(out)
    expect(status == 0, f"spill policy: {facts['problem']} {facts['warnings']}")
    return None if facts["problem"] else {option["name"]: option for option in facts["options"]}


def other_value(row, kind, words, initial):
    """Another value than the default; of words, another one of them, as the table lists them."""
    if kind in OTHER:
        return OTHER[kind].format(6 + 2 * row)
    return next(word for word in (words or ("on, off" if kind == "ONOFF" else "yes, no")).split(", ") if word != initial)


def variable(name):
    return "SPILL_" + name.removeprefix("spill.").replace(".", "_").replace(" ", "_").upper()


def check_file(folder, lines):
    path = folder / "one.conf"
    path.write_text("\n".join(lines) + "\n")
    return run("check", str(path))[1].removeprefix(str(path))


def check_sources(values, found, source, what):
    """All at once: who has its value of a source, and who has not. `found` may be None: told already."""
    if found is None:
        return
    for name, value in values.items():
        option = found.get(name)
        if option is None:
            complain(f"{name}: not in the output of spill policy")
            continue
        expect(option["value"] == value, f"{name}: {what} gave it {option['value']}, not {value}")
        expect(option["source"] == source(name), f"{name}: {what} is not its source, but {option['source']}")


def check_options(folder):
    usual = {f"{section}.{key}": initial for section, key, _, _, initial in options}
    values = {f"{section}.{key}": other_value(at, *row) for at, (section, key, *row) in enumerate(options)}
    devices = {f"device 3.{key}": f"{100 + at}MiB" for at, key in enumerate(device_keys)}
    found = effective()
    expect(set(found or usual) == set(usual), f"spill policy prints {sorted(set(found) ^ set(usual))} too many or too few")
    check_sources(usual, found, lambda name: "default", "nothing")
    named = {variable(name): value for name, value in (values | devices).items()}
    check_sources(values | devices, effective(**named), lambda name: "environment", "its variable")

    path, lines, where = folder / "all.conf", [], {}
    for name, value in (values | devices).items():
        section, key = name.rsplit(".", 1)
        lines += [f"[{section}]", f"{key} = {value}"]
        where[name] = f"{path}:{len(lines)}"
    path.write_text("\n".join(lines) + "\n")
    check_sources(values | devices, effective(SPILL_POLICY=str(path)), where.get, "a file")
    lines = [f"{name} = {value}" for name, value in values.items()]
    path.write_text("\n".join(["[app *]", *lines]) + "\n")
    check_sources(values, effective(SPILL_POLICY=str(path)),
                  lambda name: f"{path}:{2 + list(values).index(name)} [app *]", "[app *]")


def check_rules(folder):
    """Each key alone (with an act, where it is none), and all in one rule; in no other section, and no variable."""
    values = {key: other_value(at, kind, words, None) for at, (key, kind, _, words, _) in enumerate(rules)}
    act = {"priority": "cold"}
    wanted = [{key: value} if len(check_file(folder, ["[rule x]", f"{key} = {value}"])) < 8 else act | {key: value}
              for key, value in values.items()] + [values]
    path, lines = folder / "rules.conf", []
    for at, keys in enumerate(wanted):
        lines += [f"[rule r{at}]"] + [f"{key} = {value}" for key, value in keys.items()]
    path.write_text("\n".join(lines) + "\n")
    facts = json.loads(run("policy", "--json", SPILL_POLICY=str(path))[1])
    expect(facts["problem"] is None, f"rules: {facts['problem']}")
    found = [rule["keys"] for rule in facts["rules"]]
    for keys, have in zip(wanted, found):
        expect(keys == have, f"a rule with {keys} has {have}")
    expect(len(found) == len(wanted), f"{len(found)} rules instead of {len(wanted)}")
    for key, value in values.items():
        refusal = check_file(folder, ["[rule x]", f"{key} = {value}", f"{key} = {value}"])
        expect(refusal.startswith(f":3:1: '{key}' is set twice; the first is in line 2\n"), f"rule {key}, twice:{refusal}")
        warnings = json.loads(run("policy", "--json", **{variable(f"rule.{key}"): "1"})[1])["warnings"]
        expect(len(warnings) == 1, f"{variable(f'rule.{key}')} is a variable")


def policy_of(path):
    status, out = run("policy", "--json", "--for", "llama-x", SPILL_POLICY=str(path))
    facts = json.loads(out)
    expect(status == 0, f"{path.name}: {facts['problem']}")
    return facts


def check_sample(folder):
    """The example policy: as it is without effect, without its # all the defaults; each key in its section, once."""
    facts = policy_of(sample)
    expect(not facts["rules"] and all(option["source"] == "default" for option in facts["options"]),
           f"{sample.name} changes something as it is")
    text, path = sample.read_text(), folder / "sample.conf"
    path.write_text(re.sub(r"^#(?! )", "", text, flags=re.M))
    facts = policy_of(path)
    found = {option["name"]: option for option in facts["options"]}
    for section, key, _, _, initial in options:
        option, name = found[f"{section}.{key}"], f"{section}.{key}"
        # The default log is in the shell's words, and the example says it without its variable; [app NAME] has device.limit.
        value = re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", initial)
        expect(option["source"].startswith(f"{path}:"), f"{name}: {sample.name} does not set it")
        expect(option["value"] == value, f"{name}: {sample.name} has {option['value']}")
    for key in device_keys:
        expect(f"device 1.{key}" in found, f"{sample.name}: [device 1] lacks {key}")
    expect([list(rule["keys"]) for rule in facts["rules"]] == [[key for key, *_ in rules]], f"{sample.name}: its rule is {facts['rules']}")


def check_manual():
    """Each key is a paragraph of its own, with all of its sentence; roff has nothing to say about the page."""
    text = manual.read_text()
    plain = re.sub(r"\\fB|\\fR|\\&", "", text).replace("\\-", "-").replace("\\(aq", "'").replace("\\(ti", "~")
    names = [f"{section}.{key}" for section, key, *_ in options] + [key for key, *_ in rules]
    for name in names:
        expect(plain.count(f"\n.TP\n{name}\n") == 1 + (name in [f"{row[0]}.{row[1]}" for row in options] and name in [row[0] for row in rules]),
               f"{name}: not once in {manual.name}")
    for (meaning,) in strings(rf"\b(?:OPTION|RULE)\([^\n]*?,\s*{STRING}\)\n"):
        expect(meaning.replace("`", "") in plain, f"{manual.name} lacks: {meaning}")
    if shutil.which("groff"):
        done = subprocess.run(["groff", "-man", "-Tutf8", "-ww", "-z", "-rF0", str(manual)], capture_output=True, text=True, check=False)
        expect(done.returncode == 0 and not done.stderr, f"groff: {done.stderr}")


def check_documents():
    lines = document.read_text().splitlines()
    for section, key, _, _, initial in options:
        name = f"{section}.{key}"
        rows = [line for line in lines if line.startswith(f"| `{name}` | `{variable(name)}` | ")]
        expect(len(rows) == 1 and f" | `{initial}` | " in rows[0], f"{name}: {len(rows)} rows in {document.name}, or another default")
    for key in device_keys:
        expect(f"`{variable('device 1.' + key)}`" in document.read_text(), f"device N.{key}: not in {document.name}")
    words = next(row[3] for row in options if row[:2] == ["spill", "profile"]).split(", ")
    shipped = {path.stem for path in (table.parents[1] / "profiles").glob("*.conf")}
    expect(set(words) == shipped | {"none"}, f"spill.profile and profiles/: {sorted(set(words) ^ shipped)}")
    for name in shipped:
        expect(sum(line.startswith(f"- `{name}`: ") for line in lines) == 1, f"profile {name}: not in {document.name}")
    for key, *_ in rules:
        rows = [line for line in lines if line.startswith(f"| `{key}` | ") and "`SPILL_" not in line]
        expect(len(rows) == 1, f"{key} of a rule: {len(rows)} rows in {document.name}")
    wanted = {("rule NAME", key) for key, *_ in rules}
    wanted |= {(section, key) for section, key, *_ in options} | {("device N", key) for key in device_keys}
    wanted |= {("app NAME", f"{section}.{key}") for section, key, *_ in options}
    section = ""
    for line in example.read_text().splitlines():
        if line.startswith("["):
            section = re.sub(r"^(device|app|rule) .*", lambda found: f"{found[1]} {'N' if found[1] == 'device' else 'NAME'}", line[1:-1])
        else:
            wanted.discard((section, line.split(" = ")[0]))
    expect(not wanted, f"{example.name} lacks {sorted(wanted)}")


if os.path.exists("/etc/spill/spill.conf"):
    print("/etc/spill/spill.conf is here: what it sets is no default")
    sys.exit(77)
if len(options) < 20 or len(rules) < 10 or not device_keys:
    complain(f"{table}: {len(options)} options, {len(rules)} of rules: its form has changed, and this test with it")
# Each row begins with its macro's name; one that the expressions above do not read would be tested by nobody.
for macro, count in (("OPTION", len(options)), ("DEVICE", len(device_keys)), ("RULE", len(rules))):
    expect(len(re.findall(rf"^{macro}\(", text, re.M)) == count, f"{table}: rows of {macro} that this test cannot read")
with tempfile.TemporaryDirectory() as name:
    check_options(pathlib.Path(name))
    check_rules(pathlib.Path(name))
    check_sample(pathlib.Path(name))
check_manual()
check_documents()
print(f"{len(options)} options, {len(device_keys)} a device, {len(rules)} a rule; {len(bad)} bad")
sys.exit(bool(bad))
