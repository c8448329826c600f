#!/usr/bin/env python3
"""Writes small ELF files by hand: make_elf.py FILE KEY=VALUE…
bits, machine, interp (empty: none), needed (names with commas), rpath, runpath, symbols, defines, wants (a symbol, with a table to find it), text (behind all else), cut (bytes);
build_id (in hexadecimal digits), functions (NAME:ADDRESS:BYTES with commas, a name in Python's escapes), table (dynsym: not symtab; none),
many (as many more needed), long (as many more bytes of interp), loads (as many more segments)."""
import os
import struct
import sys


INTERPRETERS = {62: "/lib64/ld-linux-x86-64.so.2", 183: "/lib/ld-linux-aarch64.so.1"}


def command_machine():
    """That of the command under test (BUILD), which may be another one than the machine's."""
    command = os.path.join(os.environ.get("BUILD", "/nonexistent"), "spill")
    if not os.path.exists(command):
        return {"x86_64": 62, "aarch64": 183}[os.uname().machine]
    with open(command, "rb") as file:
        return struct.unpack_from("<H", file.read(20), 18)[0]


def build(bits=64, machine=command_machine(), interp=None, needed="", rpath="", runpath="",
          symbols="", defines="", wants="", text="", cut=0, many=0, long=0, loads=0, build_id="", functions="", table="symtab"):
    if interp is None:
        interp = INTERPRETERS[command_machine()]
    if int(bits) == 32:
        return b"\x7fELF\1\1\1" + bytes(9) + struct.pack("<HHI", 2, int(machine), 1) + bytes(28)
    interp += "x" * int(long)
    needed = ",".join([needed, *("lib%d.so" % i for i in range(int(many)))])
    base, strings, entries = 0x400000, b"\0", []

    def string(word):
        nonlocal strings
        strings += word.encode() + b"\0"
        return len(strings) - len(word.encode()) - 1

    entries += [(1, string(name)) for name in needed.split(",") if name]
    entries += [(15, string(rpath))] if rpath else []
    entries += [(29, string(runpath))] if runpath else []
    for symbol in symbols.split(","):
        string(symbol)
    # One chain, and a filter that lets all through. Of what a file only wants, section 0 has the definition.
    hashes, found = b"", defines or wants
    if found:
        hashed = 5381
        for byte in found.encode():
            hashed = (hashed * 33 + byte) & 0xffffffff
        hashes = struct.pack("<IIIIQII", 1, 1, 1, 0, 2**64 - 1, 1, hashed | 1)
        hashes += bytes(24) + struct.pack("<IBBHQQ", string(found), 0x12, 0, 1 if defines else 0, 0, 0)
    headers = 2 + bool(interp) + int(loads) + bool(build_id)
    at = 64 + 56 * headers
    where_interp, at = at, at + (len(interp) + 1 if interp else 0)
    at += -at % 8
    where_dynamic, size_dynamic = at, 16 * (len(entries) + 3 + 2 * bool(hashes))
    where_table = where_dynamic + size_dynamic
    where_strings = where_table + len(hashes)
    entries += [(0x6ffffef5, base + where_table), (6, base + where_table + 32)] if hashes else []
    entries += [(5, base + where_strings), (10, len(strings)), (0, 0)]
    total = where_strings + len(strings)

    def header(kind, offset, size):
        return struct.pack("<IIQQQQQQ", kind, 5, offset, base + offset, base + offset, size, size, 8)

    data = b"\x7fELF\2\1\1" + bytes(9) + struct.pack("<HHIQQQIHHHHHH", 3, int(machine), 1, base, 64, 0, 0, 64, 56, headers, 0, 0, 0)
    if interp:
        data += header(3, where_interp, len(interp) + 1)
    data += header(1, 0, total) * (1 + int(loads)) + header(2, where_dynamic, size_dynamic)
    note = struct.pack("<III4s", 4, len(build_id) // 2, 3, b"GNU") + bytes.fromhex(build_id)
    where_note = total + len(text.encode())
    data += header(4, where_note, len(note)) if build_id else b""
    data += interp.encode() + b"\0" if interp else b""
    data += bytes(-len(data) % 8) + b"".join(struct.pack("<qQ", *entry) for entry in entries) + hashes + strings + text.encode()
    data += note if build_id else b""
    if functions:
        data = with_functions(data, functions, {"symtab": 2, "dynsym": 11, "none": 1}[table])
    return data[:int(cut)] if int(cut) else data


def with_functions(data, functions, kind):
    """Behind it the sections with the functions: the null section, the symbols, their names."""
    names, symbols = b"\0", bytes(24)
    for function in functions.split(","):
        name, address, size = function.rsplit(":", 2)
        symbols += struct.pack("<IBBHQQ", len(names), 0x12, 0, 1, int(address, 0), int(size, 0))
        names += name.encode("latin-1").decode("unicode_escape").encode("latin-1") + b"\0"
    where = len(data) + -len(data) % 8
    data = data.ljust(where, b"\0") + symbols + names

    def section(kind, offset, size, link=0, each=0):
        return struct.pack("<IIQQQQIIQQ", 0, kind, 0, 0, offset, size, link, 0, 8, each)

    sections = bytes(64) + section(kind, where, len(symbols), 2, 24) + section(3, where + len(symbols), len(names))
    return data[:40] + struct.pack("<Q", len(data)) + data[48:58] + struct.pack("<HHH", 64, 3, 0) + data[64:] + sections


path, *words = sys.argv[1:]
with open(path, "wb") as out:
    out.write(build(**dict(word.split("=", 1) for word in words)))
os.chmod(path, 0o755)
