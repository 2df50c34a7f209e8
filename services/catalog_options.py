"""The catalogs as a setting spells them: a JSON object with the options of each catalog under its name."""

import json
import os
import re
from collections.abc import Mapping

from services.unity_client import UnityClient
from shared.paths.boundary import Boundary
from shared.unity.catalog import UnityCatalog
from shared.unity.options import is_unity, parse_options

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


def parse_catalogs(text: str) -> dict[str, dict[str, str]]:
    """Read `{"prod": {"uri": "https://…", "warehouse": "…"}}`. Raises ValueError, which repeats no value."""
    found = json.loads(text)
    if not isinstance(found, dict):
        raise ValueError('expected a JSON object, such as {"prod": {"uri": "https://catalog.example.com"}}')  # noqa: TRY004
    for name, options in found.items():
        if not _NAME.fullmatch(name):
            raise ValueError(f"a catalog's name has up to 64 letters, digits and ._-, and {name!r} has others")
        if not isinstance(options, dict) or not all(isinstance(one, str) for one in options.values()):
            raise ValueError(f"expected texts as options of the catalog {name!r}")
        if is_unity(options):
            parse_options(name, options)
    return found


def unity_catalogs(catalogs: Mapping[str, Mapping[str, str]]) -> dict[str, UnityCatalog]:
    """Return the catalogs that are Unity's, ready to be asked; no request is made yet."""
    found = {name: parse_options(name, options) for name, options in catalogs.items() if is_unity(options)}
    return {
        name: UnityCatalog(
            name, UnityClient(name, options).send, Boundary(roots=options.locations, real_path=os.path.realpath)
        )
        for name, options in found.items()
    }
