"""What the page's types are generated from: the OpenAPI document without texts and examples, kept as a file.

`python -m tests.tools.page_api` writes it. So the page is built without the decider's libraries, and a review sees
each change of the API that the page depends on.
"""

import json
from pathlib import Path
from typing import Any

from tests.support.live_decider import openapi_document

FILE = Path(__file__).resolve().parents[2] / "page" / "openapi.json"
TEXTS = frozenset({"description", "summary", "example", "examples", "title", "tags", "security"})


def page_api() -> str:
    """Return the file's text."""
    document = {name: part for name, part in openapi_document().items() if name in ("openapi", "paths", "components")}
    document["components"] = {"schemas": document["components"]["schemas"]}
    whole = {"info": {"title": "Lakewright", "version": "any"}, **_without_texts(document)}
    return json.dumps(whole, indent=1, sort_keys=True) + "\n"


def _without_texts(node: Any, *, is_names: bool = False) -> Any:
    """Drop texts; below `properties`, keys are names of fields and none is dropped. Tuples become lists of one type."""
    if isinstance(node, dict):
        if "prefixItems" in node and not is_names:
            return {"type": "array", "items": _without_texts(node["prefixItems"][0])}
        return {
            name: _without_texts(part, is_names=name == "properties" and not is_names)
            for name, part in node.items()
            if is_names or name not in TEXTS
        }
    return [_without_texts(part) for part in node] if isinstance(node, list) else node


if __name__ == "__main__":
    FILE.write_text(page_api())
    print(f"{FILE}: {len(page_api())} characters")
