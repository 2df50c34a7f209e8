"""The columns whose metrics are not in the footers of Parquet files, but in manifests alone: those of floats."""

from collections.abc import Iterator, Mapping
from typing import Any

_FLOATS = frozenset({"float", "double"})


def float_columns(schema: Mapping[str, Any]) -> list[str]:
    """Return the names of the columns of floats in a schema as Iceberg writes it; those in structs have their path.

    Columns in lists and maps have no metrics.
    """
    return list(_found(schema, ""))


def _found(struct: Mapping[str, Any], above: str) -> Iterator[str]:
    for field in struct["fields"]:
        name, kind = f"{above}{field['name']}", field["type"]
        if isinstance(kind, Mapping):
            yield from _found(kind, f"{name}.") if kind["type"] == "struct" else ()
        elif kind in _FLOATS:
            yield name
