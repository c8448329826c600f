"""Relative links in markdown files lead to files, and their #anchors to headings. usage: links.py FILE.md…"""
import pathlib
import re
import sys
import urllib.parse

FENCE = re.compile(r"^(```|~~~).*?^\1", re.M | re.S)
LINK = re.compile(r"!?\[[^\]]*\]\(\s*<?([^)\s>]+)>?[^)]*\)|^\[[^\]]+\]:\s*<?(\S+?)>?\s*$", re.M)


def anchors(path):
    """Names of a file's headings as the usual hosts make them."""
    names = set()
    for heading in re.findall(r"^#+\s+(.*?)\s*#*$", FENCE.sub("", path.read_text()), re.M):
        name = re.sub(r"[^\w\- ]", "", re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()).replace(" ", "-")
        number = 1
        unique = name
        while unique in names:
            unique, number = f"{name}-{number}", number + 1
        names.add(unique)
    return names


def problem(source, link):
    parts = urllib.parse.urlsplit(link)
    if parts.scheme or parts.netloc:
        return None
    target = source.parent / urllib.parse.unquote(parts.path) if parts.path else source
    if not target.exists():
        return "leads nowhere"
    if parts.fragment and target.suffix == ".md" and parts.fragment not in anchors(target):
        return "no such heading"
    return None


bad = links = 0
for source in map(pathlib.Path, sys.argv[1:]):
    text = re.sub(r"`[^`\n]*`", "", FENCE.sub("", source.read_text()))
    for found in LINK.finditer(text):
        link = found[1] or found[2]
        links += 1
        what = problem(source, link)
        if what:
            bad += 1
            print(f"{source}: {link}: {what}")
print(f"{len(sys.argv) - 1} files, {links} links, {bad} bad")
sys.exit(bad > 0 or len(sys.argv) < 2)
