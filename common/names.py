"""Names of files that everything can store: file systems, object stores, tables and archives."""

from __future__ import annotations

from collections.abc import Sequence

KEY_BYTES = 1024
"""Maximum length of a name in object stores, including the prefix of the store and the folder of a dataset or run."""
PATH_BYTES = 700
NAME_BYTES = 255
VERSION_PARAMETER = "?versionId="
"""Clients of S3 read the text after it as the version of the object named before it, and would replace that object."""


def problem(path: str) -> str | None:
    r"""Why a file cannot have this relative POSIX path everywhere, for "... cannot be stored: it ..."; None if it can.

    >>> problem("train/1.png"), problem("../1.png"), problem("a\n")
    (None, "is not a plain relative path ('.', '..' or an empty part)", 'contains a control character')
    """
    length = len(path.encode(errors="surrogatepass"))
    if length > PATH_BYTES:  # before anything that takes longer: an agent can make many files with much longer paths
        return f"has {length} bytes, more than {PATH_BYTES}"
    if not {"", ".", ".."}.isdisjoint(path.split("/")):
        return "is not a plain relative path ('.', '..' or an empty part)"
    if VERSION_PARAMETER in path:
        return f"contains {VERSION_PARAMETER!r}"
    if path.isascii() and path.isprintable() and "\\" not in path and len(path) <= NAME_BYTES:
        return None  # nearly all of them, of which there can be a million
    try:
        encoded = path.encode()
    except UnicodeEncodeError:
        return "is not valid UTF-8"
    if any(character < " " or character == "\x7f" for character in path):
        return "contains a control character"
    if "\\" in path:
        return "contains a backslash"
    longest = max(len(part) for part in encoded.split(b"/"))
    return f"has a part of {longest} bytes, more than {NAME_BYTES}" if longest > NAME_BYTES else None


def all_usual(paths: Sequence[str]) -> bool:
    r"""Whether none of many paths has a `problem`. Some of those that have none are unusual, too, such as "ä".

    >>> all_usual(["train/1.png", "2.png"]), all_usual(["train/1.png", "../2.png"]), all_usual(["a\nb"])
    (True, False, False)
    """
    if not paths:
        return True
    text = f"/{'/'.join(paths)}/"
    return (
        text.isascii()
        and text.isprintable()
        and not any(unusual in text for unusual in ("\\", VERSION_PARAMETER, "//", "/./", "/../"))
        and max(map(len, paths)) <= NAME_BYTES
    )


def is_text(path: str) -> bool:
    r"""Whether a path, as the file system names it, is valid UTF-8.

    >>> is_text("ä"), is_text("\udcff")
    (True, False)
    """
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True


def shown(path: str) -> str:
    r"""A name for a message: one line, and text that can be printed; shortened in the middle.

    >>> shown("a\n\udcff")
    "'a\\n\\udcff'"
    """
    text = ascii(path) if not path.isprintable() else repr(path)
    return text if len(text) <= 120 else f"{text[:60]}...{text[-50:]}"
