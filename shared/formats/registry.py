"""Abilities of engines for tables of each format, by the name of the format; a new format adds one line."""

from collections.abc import Mapping

from shared.formats import delta
from shared.formats.delta_vacuum_plan import own_retention_s
from shared.formats.iceberg import names, support
from shared.formats.qbeast.status import index_status
from shared.formats.support import FormatSupport
from shared.layout.upkeep import UPKEEP

SUPPORT: Mapping[str, FormatSupport] = {
    delta.FORMAT: FormatSupport(
        "Delta",
        sql_paths=delta.FORMAT,
        lacks={one.kind: one.lacking for one in UPKEEP},
        own_retention_s=own_retention_s,
        index_status=index_status,
    ),
    names.FORMAT: support.SUPPORT,
}
_EVERYTHING = FormatSupport()


def support_of(name: str) -> FormatSupport:
    """Return what engines can do with tables of this format; everything where the format is not known yet."""
    return SUPPORT.get(name, _EVERYTHING)
