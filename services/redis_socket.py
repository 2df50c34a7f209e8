"""Where the standalone's Redis listens: on a Unix socket in a folder that no other user of the machine can enter.

A port of the loopback address would be open to every local user, and free for any user to take while Redis is down. The
location follows from the data directory alone, so that programs with the same directory find it.
"""

import hashlib
import os
import tempfile
from pathlib import Path
from urllib.parse import quote

MAX_SOCKET_PATH_BYTES = 100
"""Longest path of a socket: the system's `sun_path` has 104 bytes on macOS and 108 on Linux, with the ending zero."""

_NAME = "redis.sock"


def socket_path(data_dir: Path) -> Path:
    """Return the socket of the Redis that keeps its data in this directory.

    It is beside the data, unless that path is too long for a socket; then in a folder of this user's for short-lived
    files, under a name that follows from the data directory.
    """
    beside = data_dir.resolve() / "redis" / _NAME
    if len(os.fsencode(beside)) <= MAX_SOCKET_PATH_BYTES:
        return beside
    digest = hashlib.blake2b(os.fsencode(beside), digest_size=8).hexdigest()
    return Path(tempfile.gettempdir()) / f"lakewright-{os.getuid()}-{digest}" / _NAME


def socket_url(socket: Path) -> str:
    """Return the URL by which clients connect to a socket."""
    return f"unix://{quote(str(socket))}?db=0"
