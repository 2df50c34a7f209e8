"""Kinds of entries where a file of a table is expected: only plain files are opened, in decider and actor alike.

Everyone who may write into a table's folder chooses what lies there, and the open of a pipe waits for ever.
"""

import stat

_KINDS = {
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFDIR: "a folder",
    stat.S_IFLNK: "a link",
}


def odd_kind(mode: int) -> str:
    """Return what a file of this mode is, empty for a plain file."""
    return "" if stat.S_ISREG(mode) else _KINDS.get(stat.S_IFMT(mode), "no plain file")
