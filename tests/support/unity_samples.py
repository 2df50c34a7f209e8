"""The samples of Unity Catalog's REST API (`tests/data/unity`), and answers made of them."""

import json
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[1] / "data" / "unity"


def sample(name: str) -> dict[str, Any]:
    """Return a sample by its name without `.json`."""
    found: dict[str, Any] = json.loads((FOLDER / f"{name}.json").read_text())
    return found


def table_answer(full_name: str, location: str, table_id: str = "", **fields: Any) -> dict[str, Any]:
    """Return the sample of a table as one of this full name and location; `fields` replace others."""
    catalog, schema, name = full_name.split(".")
    own = {"name": name, "catalog_name": catalog, "schema_name": schema, "storage_location": location}
    return sample("table") | own | ({"table_id": table_id} if table_id else {}) | fields
