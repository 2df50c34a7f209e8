"""Programs that only answer the question for their version, as the real ones do."""

from pathlib import Path


def _script(file: Path, body: str) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"#!/bin/sh\n{body}\n")
    file.chmod(0o755)
    return file


def fake_java(home: Path, version: str, *, exit_code: int = 0, then: str = "") -> Path:
    """Make `home/bin/java`, which answers -XshowSettings:properties and then runs `then`; returns the home."""
    settings = f'echo "    java.home = {home}"\necho "    java.version = {version}"'
    _script(home / "bin" / "java", f"{{ {settings}\n}} >&2\n{then}\nexit {exit_code}")
    return home


def fake_redis(folder: Path, says: str, *, name: str = "redis-server") -> Path:
    """Make a Redis server that says this for its version; returns the program."""
    return _script(folder / name, f"echo '{says}'")
