#!/usr/bin/env python3
"""Writes small ELF files by hand: make_elf.py FILE KEY=VALUE…
bits, machine, interp (empty: none), needed (names with commas), rpath, runpath, symbols, defines, wants (a symbol, with a table to find it), text (behind all else), cut (bytes);
many (as many more needed), long (as many more bytes of interp), loads (as many more segments)."""
import os
import struct
import sys


def build(bits=64, machine={"x86_64": 62, "aarch64": 183}[os.uname().machine], interp=None, needed="", rpath="", runpath="",
          symbols="", defines="", wants="", text="", cut=0, many=0, long=0, loads=0):
    if interp is None:
        interp = {"x86_64": "/lib64/ld-linux-x86-64.so.2", "aarch64": "/lib/ld-linux-aarch64.so.1"}[os.uname().machine]
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
    table, found = b"", defines or wants
    if found:
        hashed = 5381
        for byte in found.encode():
            hashed = (hashed * 33 + byte) & 0xffffffff
        table = struct.pack("<IIIIQII", 1, 1, 1, 0, 2**64 - 1, 1, hashed | 1)
        table += bytes(24) + struct.pack("<IBBHQQ", string(found), 0x12, 0, 1 if defines else 0, 0, 0)
    headers = 2 + bool(interp) + int(loads)
    at = 64 + 56 * headers
    where_interp, at = at, at + (len(interp) + 1 if interp else 0)
    at += -at % 8
    where_dynamic, size_dynamic = at, 16 * (len(entries) + 3 + 2 * bool(table))
    where_table = where_dynamic + size_dynamic
    where_strings = where_table + len(table)
    entries += [(0x6ffffef5, base + where_table), (6, base + where_table + 32)] if table else []
    entries += [(5, base + where_strings), (10, len(strings)), (0, 0)]
    total = where_strings + len(strings)

    def header(kind, offset, size):
        return struct.pack("<IIQQQQQQ", kind, 5, offset, base + offset, base + offset, size, size, 8)

    data = b"\x7fELF\2\1\1" + bytes(9) + struct.pack("<HHIQQQIHHHHHH", 3, int(machine), 1, base, 64, 0, 0, 64, 56, headers, 0, 0, 0)
    if interp:
        data += header(3, where_interp, len(interp) + 1)
    data += header(1, 0, total) * (1 + int(loads)) + header(2, where_dynamic, size_dynamic)
    data += interp.encode() + b"\0" if interp else b""
    data += bytes(-len(data) % 8) + b"".join(struct.pack("<qQ", *entry) for entry in entries) + table + strings + text.encode()
    return data[:int(cut)] if int(cut) else data


path, *words = sys.argv[1:]
with open(path, "wb") as out:
    out.write(build(**dict(word.split("=", 1) for word in words)))
os.chmod(path, 0o755)
