"""pyiceberg's maintenance, which expires snapshots: it compacts nothing, and must not harm those that are read."""

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from importlib import metadata
from pathlib import Path

from tests.jepsen.rival import BY_PYICEBERG, CATALOG, Looping

KEPT = timedelta(seconds=20)
"""Age from which snapshots are expired: the laboratory notes each of them within seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PyIceberg(Looping):
    """Two processes."""

    module: str = __name__

    def version(self) -> str:
        return metadata.version("pyiceberg")


RIVALS = (PyIceberg("pyiceberg", "pyiceberg `expire_snapshots`", writers=BY_PYICEBERG, rewrites=False),)


def compactor(_: Path) -> Callable[[str], object]:
    """Return what expires the old snapshots of a table."""
    from pyiceberg.catalog import load_catalog

    catalog = load_catalog("lake", **json.loads(os.environ[CATALOG]))

    def expire(table: str) -> None:
        loaded = catalog.load_table(table)
        loaded.maintenance.expire_snapshots().older_than(datetime.now() - KEPT).commit()  # noqa: DTZ005 - as it expects

    return expire
