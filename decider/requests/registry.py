"""All requests about whole tables, by name: every subclass of `TableRequest` in this package, and upkeep."""

from collections.abc import Mapping
from importlib import import_module
from pkgutil import iter_modules
from types import MappingProxyType

import decider.requests as package
from decider.requests.table_request import TableRequest
from decider.requests.upkeep import UPKEEP_REQUESTS

_INNER = frozenset({"registry", "requested_table", "table_request", "upkeep"})
"""Modules that declare no single one; a command line without the decider's libraries cannot import some of them."""


def _declared() -> Mapping[str, type[TableRequest]]:
    names = (one.name for one in iter_modules(package.__path__) if one.name not in _INNER)
    members = (one for name in names for one in vars(import_module(f"{package.__name__}.{name}")).values())
    found = [one for one in members if isinstance(one, type) and issubclass(one, TableRequest)]
    return MappingProxyType({one.name: one for one in (*found, *UPKEEP_REQUESTS) if one is not TableRequest})


REQUESTS = _declared()
"""Requests by name; the API and the command line offer all of them."""
