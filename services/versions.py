"""Installed release of a package; a bare checkout has none of Lakewright, and reports that."""

from importlib.metadata import PackageNotFoundError, version


def installed(package: str) -> str | None:
    """Return the installed release of a package, None if it is not installed."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None
