#!/usr/bin/env python3
"""What json_emit makes of hostile strings is one line of valid UTF-8 JSON each, and means the same."""
import json
import random
import re
import struct
import subprocess
import sys

random.seed(1)
strings = [bytes([a]) for a in range(256)] + [bytes([a, b]) for a in range(0xC0, 256) for b in range(256)]
strings += [b"\xf0\x9f\x98\x80" * n for n in (1, 100)] + [b"", b'"', b"\\" * 9, bytes(range(256)) * 4]
edges = [b"\x00", b'"', b"\\", b"\n", b"\xc2\x85", b"\xe2\x82\xac", b"\xed\xa0\x80", b"\xf4\x8f\xbf\xbf", b"\xf4\x90\x80\x80", b"\xff", b"\xe2\x80\xae", b"\xe2\x81\xa9", b"\xd8\x9c"]
for _ in range(3000):
    strings.append(b"".join(random.choice(edges + [random.randbytes(2)]) for _ in range(random.randrange(12))))

sent = b"".join(struct.pack("<I", len(text)) + text for text in strings)
lines = subprocess.run([sys.argv[1]], input=sent, stdout=subprocess.PIPE, check=True).stdout.split(b"\n")
assert lines.pop() == b"" and len(lines) == len(strings), (len(lines), len(strings))


def folded(text):
    """How many U+FFFD stand for one broken sequence is the writer's choice."""
    return re.sub("\ufffd+", "\ufffd", text)


for text, line in zip(strings, lines):
    meant = json.loads(line.decode("utf-8", "strict"))
    assert folded(meant) == folded(text.decode("utf-8", "replace")), (text, line)
    assert not re.search("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]", line.decode("utf-8")), (text, line)
print(len(strings), "strings")
