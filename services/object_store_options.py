"""The options of object stores as a setting spells them: a JSON object, with places inside that have their own."""

import json

from shared.paths.locations import canonical_location
from shared.paths.store_options import ALL, StoreOptions


def parse_store_options(text: str) -> StoreOptions:
    """Read `{"region": "eu-west-1", "s3://logs": {"endpoint": "…"}}`. Raises ValueError, which repeats no value."""
    found = json.loads(text)
    if not isinstance(found, dict):
        raise ValueError('expected a JSON object, such as {"region": "eu-west-1"}')  # noqa: TRY004 - as the parsers do
    everywhere = {name: value for name, value in found.items() if "://" not in name}
    places = {_place(name): _plain(value, name) for name, value in found.items() if "://" in name}
    return StoreOptions({ALL: _plain(everywhere, "the object")} | places)


def _place(text: str) -> str:
    """Return the canonical spelling of `s3://` or `s3a://bucket`; one client serves a bucket, so nothing narrower."""
    scheme, _, bucket = text.partition("://")
    if "/" in bucket.rstrip("/"):
        raise ValueError(f"{text} lies below a bucket; options hold for whole buckets")
    canonical = canonical_location(f"{scheme}://{bucket or 'any'}")
    return canonical if bucket else canonical.removesuffix("any")


def _plain(found: object, where: str) -> dict[str, str]:
    if not isinstance(found, dict) or not all(isinstance(value, str | int | float | bool) for value in found.values()):
        raise ValueError(f'expected plain values in {where}, such as {{"region": "eu-west-1"}}')
    return {name: value if isinstance(value, str) else json.dumps(value) for name, value in found.items()}
