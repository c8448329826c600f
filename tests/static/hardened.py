"""Library and command have the protections that the build asks for: hardened.py MACHINE COMPILER LIBRARY COMMAND OBJECT…

MACHINE: what all of it is for, as meson names it. OBJECT: a folder of our object files, or an archive of them. The test first makes a
library without any protection, and must complain of all that is missing there.
"""
import pathlib
import re
import subprocess
import sys
import tempfile

X86 = sys.argv[1] == "x86_64"
MARKS = {"IBT", "SHSTK"} if X86 else {"BTI", "PAC"}
LANDING = {"endbr64"} if X86 else {"bti", "paciasp"}


def printed(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True, env={"PATH": "/usr/bin:/bin", "LC_ALL": "C"}).stdout


def marks(notes):
    """What a file says of itself: the features of its control flow."""
    found = re.search(r"feature(?:_1_AND)?: (.*)", notes)
    return set(re.findall(r"\w+", found[1])) if found else set()


def without_landing_pad(path):
    """Functions that others call, and that do not begin with a landing pad."""
    listing = printed("objdump", "-d", "--no-show-raw-insn", path)
    first = dict(re.findall(r"^[0-9a-f]+ <(\w+)>:\n\s*[0-9a-f]+:\s+(\w+)", listing, re.M))
    exported = {line.split()[7].split("@")[0] for line in printed("readelf", "--dyn-syms", "-W", path).splitlines()
                if re.search(r" FUNC +GLOBAL +DEFAULT +\d+ ", line)}
    return sorted(name for name in exported if first.get(name) not in LANDING)


def complaints(path, shadow_stack):
    """What the linked file lacks."""
    headers, dynamic = printed("readelf", "-lW", path), printed("readelf", "-dW", path)
    segments = [line for line in headers.splitlines() if re.match(r"\s+(LOAD|GNU_STACK)\s", line)]
    unprotected = without_landing_pad(path)
    wrong = {
        "executable stack": not any(re.search(r"GNU_STACK .* RW ", line) for line in segments),
        "memory that is writable and executable": any(re.search(r"LOAD .* RWE ", line) for line in segments),
        "no RELRO": "GNU_RELRO" not in headers,
        "functions are bound at their first call": not re.search(r"\(FLAGS_1\).*\bNOW\b", dynamic),
        "relocations in its code": "TEXTREL" in dynamic,
        "looks for libraries in a folder of its own": re.search(r"\((RPATH|RUNPATH)\)", dynamic),
        "no guard of the stack": "__stack_chk_fail" not in printed("readelf", "--dyn-syms", "-W", path),
        "no mark of a shadow stack": shadow_stack and "SHSTK" not in marks(printed("readelf", "-nW", path)),
        f"no landing pad: {', '.join(unprotected[:9])}": unprotected,
        "not position independent": "Shared object file" not in headers and "Position-Independent" not in headers,
    }
    return [what for what, found in wrong.items() if found]


def unmarked(objects):
    """Our object files without the marks: one of them takes the mark from the whole library."""
    files = [file for path in objects for file in (sorted(path.glob("*.o")) if path.is_dir() else [path])]
    bad, count = [], 0
    for file in files:
        members = re.split(r"^File: ", "\n" + printed("readelf", "-nW", file), flags=re.M)
        for member in members[1:] if len(members) > 1 else [f"{file}\n{members[0]}"]:
            count += 1
            if not marks(member) >= MARKS:
                bad.append(member.split("\n")[0])
    return bad, count


def check_self(compiler):
    with tempfile.TemporaryDirectory() as folder:
        source, library, plain = (pathlib.Path(folder) / name for name in ("a.c", "a.so", "a.o"))
        source.write_text("int naked(void); int naked(void) { return 1; }\n")
        flags = ["-fPIC", "-fno-stack-protector", "-fcf-protection=none" if X86 else "-mbranch-protection=none"]
        subprocess.run([*compiler, *flags, "-c", source, "-o", plain], check=True)
        subprocess.run([*compiler, "-shared", plain, "-o", library, "-Wl,-z,execstack", "-Wl,-z,norelro", "-Wl,-z,lazy",
                        "-Wl,-rpath,/nowhere"], check=True, stderr=subprocess.DEVNULL)
        found = complaints(library, X86)
        assert len(found) == 6 + X86 and any("naked" in text for text in found), found
        assert unmarked([plain]) == ([str(plain)], 1)


def main(compiler, library, command, *objects):
    check_self(compiler.split())
    bad = [f"{path}: {what}" for path in (library, command) for what in complaints(path, X86)]
    naked, count = unmarked([pathlib.Path(path) for path in objects])
    bad += [f"{name}: not marked {MARKS}" for name in naked]
    print("\n".join(bad) or f"{count} object files, none unmarked")
    sys.exit(bool(bad) or count < 100)


main(*sys.argv[2:])
