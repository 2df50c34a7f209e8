"""The catalogs as a setting spells them, and the client of Unity's: a JSON object of options under each name."""

import json
import os
import re
import ssl
import threading
import time
from collections.abc import Mapping

from shared.bounded_answer import joined
from shared.errors import RetryableError
from shared.paths.boundary import Boundary
from shared.paths.locations import canonical_location
from shared.paths.store_options import ALL, StoreOptions
from shared.unity.catalog import UnityCatalog
from shared.unity.exchange import UnityAnswer, UnityRequest
from shared.unity.options import UnityOptions, is_unity, parse_options

CONNECT_TIMEOUT_S = 10.0
"""Seconds to connect: a host that does not answer by then is down, or behind a firewall."""


class UnityClient:
    """Sends requests to the catalog `name`, each over a connection of its own; used from any number of threads.

    Servers and proxies close idle connections at moments of their own, and a request that meets one fails. Redirects
    are not followed, because the token would go along to wherever they lead.
    """

    def __init__(self, name: str, options: UnityOptions) -> None:
        self._name = name
        self._options = options
        self._trust: ssl.SSLContext | None = None
        self._loading = threading.Lock()

    def send(self, request: UnityRequest) -> UnityAnswer:
        """Send a request and return the answer; see `shared.unity.exchange.Send`."""
        import httpx  # noqa: PLC0415 - a fifth of a second, which a process without such a catalog need not wait for

        deadline_s = time.monotonic() + self._options.timeout_s
        limits = httpx.Timeout(self._options.timeout_s, connect=min(CONNECT_TIMEOUT_S, self._options.timeout_s))
        token = self._options.token
        try:
            with (
                httpx.Client(timeout=limits, follow_redirects=False, verify=self._certificates()) as client,
                client.stream(
                    "GET",
                    f"{self._options.uri}/{request.path}",
                    params=dict(request.query) or None,
                    headers={"Accept": "application/json"} | ({"Authorization": f"Bearer {token}"} if token else {}),
                ) as response,
            ):
                of = f"catalog {self._name}: an answer of {self._options.uri} (limit: `timeout-s`)"
                return UnityAnswer(
                    response.status_code,
                    joined(response.iter_bytes(), of, until_s=deadline_s, now_s=time.monotonic),
                )
        except httpx.HTTPError as problem:
            raise RetryableError(
                f"catalog {self._name}: GET {request.path} at {self._options.uri}: no answer "
                f"({type(problem).__name__}: {problem})"
            ) from problem

    def _certificates(self) -> ssl.SSLContext:
        """Return the machine's and the configured certificates, read once: that takes 20 ms."""
        import httpx  # noqa: PLC0415 - loaded already

        with self._loading:
            if self._trust is None:
                self._trust = httpx.create_ssl_context()
            return self._trust


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
