"""Commands that read a table's log import parts of the decider, which an installation of the command line may lack."""

from collections.abc import Iterator
from contextlib import contextmanager

from services.cli.client import CallFailed


@contextmanager
def decider_parts(*, extra: str = "decider") -> Iterator[None]:
    """Import parts of the decider in the body; raises CallFailed with the extra to install if one is missing."""
    try:
        yield
    except ImportError as missing:
        raise CallFailed(
            f"reading a table's log needs {missing.name}, which is not installed; "
            f"run: pip install 'lakewright[{extra}]'"
        ) from missing
