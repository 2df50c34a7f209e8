"""Damage to values, not to bytes: it is still JSON, YAML, Avro or Parquet, and reaches those who read the values."""

import copy
import json
import random
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

NESTED: list[Any] = []
for _ in range(60):
    NESTED = [NESTED]

ODD: tuple[Any, ...] = (
    None,
    True,
    0,
    -1,
    2**31,
    2**63 - 1,
    -(2**63),
    2**64,
    10**30,
    0.5,
    -0.0,
    1e308,
    float("nan"),
    float("inf"),
    "",
    " ",
    "\0",
    "\ud800",
    "..",
    "/",
    "%",
    "%2e%2e/x",
    "\N{LATIN SMALL LETTER E WITH ACUTE}" * 300,
    "9" * 5_000,
    "1e999999999",
    "9" * 400 + " days",
    "(" * 3_000,
    "file:///etc/passwd",
    "http://[",
    "decimal(99,99)",
    [],
    {},
    [None],
    {"": None},
    [[0]],
    NESTED,
)
"""Values that few expect: of another type, too large, too deep, empty, and texts that mean something elsewhere."""

Place = tuple[Any, Any]
"""A container and a key or position in it."""


def with_odd_values(tree: Any, chance: random.Random) -> Any:
    """Return a copy of JSON, one to three values replaced, removed, repeated or exchanged; in texts of JSON, too."""
    box = [copy.deepcopy(tree)]
    for _ in range(chance.randint(1, 3)):
        container, key = chance.choice(list(_places(box)))
        value = container[key]
        match chance.randrange(6):
            case 0 if container is not box:
                del container[key]
            case 1 if isinstance(container, list) and container is not box:
                container += [value] * chance.choice((1, 50))
            case 2:
                other, place = chance.choice(list(_places(box)))
                container[key] = copy.deepcopy(other[place])
            case 3 if isinstance(container, dict):
                container[chance.choice(("", "\0", "add", str(key).upper()))] = container.pop(key)
            case _ if isinstance(value, str) and value[:1] in ("{", "["):
                container[key] = _within(value, chance)
            case _:
                container[key] = copy.deepcopy(chance.choice(ODD))
    return box[0]


def _within(text: str, chance: random.Random) -> str:
    """Damage a text that holds JSON."""
    with suppress(ValueError):
        return json.dumps(with_odd_values(json.loads(text), chance))
    return text


def _places(container: Any) -> Iterator[Place]:
    """Yield every place of a value below a container, two levels of nesting of JSON texts excepted."""
    keys = list(container) if isinstance(container, dict) else range(len(container))
    for key in keys:
        yield container, key
        if isinstance(container[key], (dict, list)):
            yield from _places(container[key])
