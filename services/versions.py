"""Which release of a package is installed; a bare checkout has none of ours, and says so."""

from importlib.metadata import PackageNotFoundError, version


def installed(package: str) -> str | None:
    """Return the installed release of a package, None if it is not installed."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None
