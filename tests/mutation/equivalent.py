"""Reads equivalent.txt: changes that no test can notice, judged once, with the reason."""
import pathlib

FILE = pathlib.Path(__file__).resolve().parent / "equivalent.txt"


def read(text=None):
    """The reason by (file of the product, old line, new line), both without their indentation."""
    text = FILE.read_text(encoding="utf-8") if text is None else text
    reasons = {}
    for block in text.split("\n\n"):
        lines = [line for line in block.strip().split("\n") if line and not line.startswith("#")]
        if lines:
            name, old, new, *reason = lines
            joined = any(line.startswith(("- ", "+ ")) for line in reason)  # two blocks, without a line between them
            if joined or not (old.startswith("- ") and new.startswith("+ ") and reason):
                raise ValueError(f"not as at the top of equivalent.txt: {block}")
            reasons[name, old[2:], new[2:]] = " ".join(line.strip() for line in reason)
    return reasons
