"""Trees of files as people have them, and worse: for whoever takes them to a server and back."""

import hashlib
import random

MIB = 1024 * 1024

# Names that programs have trouble with. All of them are names for the File service.
HOSTILE = [
    "ä b+c%20.txt", "100%", "a&b=c;d", "'single'", "#hash", "日本語", "😀", "e\u0301", "\u202eright", "a\u200bb", " leading", "UPPER.txt",
    "~$lock", "{braces} [brackets]", "a..b", "%41", "+", "@,!", "x" * 200, "\u00a0", "é",
]


def tree(seed=1):
    """Paths with contents. Directories without files end with a slash."""
    dice = random.Random(seed)
    files = {
        "a.txt": b"alpha",
        "empty": b"",
        "dir/deeper/1.bin": bytes(range(256)) * 40,
        "dir/page": b"p" * 512,
        "dir/over a page": b"q" * 513,
        "large.bin": dice.randbytes(9 * MIB + 1),
        "four.bin": dice.randbytes(4 * MIB),
        "nothing/": None,
        "nothing/inside/": None,
    }
    for name in HOSTILE:
        files[f"hostile/{name}"] = name.encode()
        files[f"hostile {name}/file"] = dice.randbytes(dice.randrange(3_000))
    return files


def digest(content):
    return content if content is None else hashlib.sha256(content).hexdigest()


def digests(files):
    return {path: digest(content) for path, content in files.items()}


def parents(path):
    """The directories above a path, from the top down."""
    parts = path.rstrip("/").split("/")
    above = ["/".join(parts[:count]) for count in range(1, len(parts))]
    return above + ([path.rstrip("/")] if path.endswith("/") else [])
