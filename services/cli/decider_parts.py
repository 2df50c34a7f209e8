"""Commands that read a table's log import parts of the decider, which an installation of the command line may lack."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from services.cli.client import CallFailed
from services.settings import format_options, store_options

if TYPE_CHECKING:
    from decider.formats.registry import TableFormats


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


def local_formats() -> "TableFormats":
    """Return readers of tables at any location; raises CallFailed as `decider_parts` does."""
    with decider_parts():
        from decider.formats.registry import table_formats  # noqa: PLC0415 - optional, and slow to import
        from decider.formats.table_format import StorageAccess  # noqa: PLC0415
        from decider.storage.object_reads import ReadMeter  # noqa: PLC0415
        from decider.storage.stores import ObjectStores  # noqa: PLC0415
    return table_formats(StorageAccess(ReadMeter(), ObjectStores(store_options())), format_options())
