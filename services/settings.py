"""Every environment variable that Lakewright reads, in one place: name, unit, default, and why that default.

Nothing else looks into the environment, so what is not here has no effect, and a value that cannot be used stops the
start with a message instead of surfacing later.
"""

import json
import os
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from decider.observe.locations import canonical_location
from shared.errors import InvalidInput
from shared.policy import PREFIX, Policy, apply, read_properties
from shared.store_options import ALL, StoreOptions

T = TypeVar("T")
N = TypeVar("N", int, float)

REDIS_URL = "LAKEWRIGHT_REDIS_URL"
"""Redis or Valkey, with AOF on and `maxmemory-policy noeviction`. Default: port 7421 of this machine, where the
standalone keeps its own."""

QUEUE = "LAKEWRIGHT_QUEUE"
"""Name of the queue that deciders and actors share; another name is another world. Default: `default`."""

HTTP_ADDRESS = "LAKEWRIGHT_HTTP_ADDRESS"
"""`host:port` of the REST API. Default: the loopback address, because without a token nobody else may call."""

TOKEN = "LAKEWRIGHT_TOKEN"  # noqa: S105 - the name of a variable, not a secret
"""Bearer token that every /v1 call must carry; needed to listen beyond the loopback address. Default: none."""

ROOTS = "LAKEWRIGHT_ROOTS"
"""Locations, comma-separated, below which a table may be registered by an event. Default: none, so by call only."""

BUCKETS = "LAKEWRIGHT_BUCKETS"
"""`bucket=uri` pairs, comma-separated: where a bucket that an event names is found. Default: the sender's scheme."""

SWEEP_S = "LAKEWRIGHT_SWEEP_S"
"""Seconds between two looks at a table nobody spoke of. Default 300: how late a lost event is noticed, at one request
per table and interval."""

STORE_OPTIONS = "LAKEWRIGHT_STORE_OPTIONS"
"""JSON object with options of the object stores, such as {"region": "eu-west-1"}; a place (`s3://`, `gs://bucket`) has
options of its own: {"s3://logs": {"endpoint": "http://minio:9000", "allow_http": true}}. Read by deciders and actors
alike. Default: none; the usual environment variables and instance credentials apply."""

POLICY = "LAKEWRIGHT_POLICY"
"""Defaults of the service for all tables, as in `target-file-size=64mb,min-input-files=8`. Default: those of the
properties themselves."""

MAX_BODY_BYTES = "LAKEWRIGHT_MAX_BODY_BYTES"
"""Largest request body in bytes. Default 1 MiB: ten thousand events fit, and a thousand such requests fit in memory."""

DATA_DIR = "LAKEWRIGHT_DATA_DIR"
"""Folder for Redis data, logs and scratch space. Default: `.lakewright` in the working directory."""

JAVA = "LAKEWRIGHT_JAVA"
"""`auto`, `system`, `bundled`, or the home of a Java 17 or 21. Default `auto`: the machine's, else the bundled one."""

IVY_DIR = "LAKEWRIGHT_IVY_DIR"
"""Where the jars that Delta adds to Spark lie. Default: `ivy` in the folder of downloads."""

LOG_LEVEL = "LAKEWRIGHT_LOG_LEVEL"
"""debug, info, warning or error. Default: info."""

URL = "LAKEWRIGHT_URL"
"""Where the command line finds the decider. Default: http://127.0.0.1:7420, as the decider's own default."""

DEFAULT_HTTP_ADDRESS = "127.0.0.1:7420"
DEFAULT_URL = f"http://{DEFAULT_HTTP_ADDRESS}"
DEFAULT_REDIS_PORT = 7421
DEFAULT_REDIS_URL = f"redis://127.0.0.1:{DEFAULT_REDIS_PORT}/0"
_SECRETS = frozenset({TOKEN, STORE_OPTIONS})
_MAX_PORT = 65_535
_LOG_LEVELS = ("debug", "info", "warning", "error")
_SWEEP_RANGE_S = (1.0, 86_400.0)
_BODY_RANGE_BYTES = (1_024, 64 * 1_048_576)


@dataclass(frozen=True, slots=True)
class Address:
    """Where to listen; `host` may be a name or an IP address, in brackets for IPv6 in the text form."""

    host: str
    port: int


@dataclass(frozen=True, slots=True)
class DeciderSettings:
    """What the decider is told by its environment; see the variables above for units and reasons."""

    redis_url: str = DEFAULT_REDIS_URL
    queue: str = "default"
    address: Address = Address("127.0.0.1", 7420)
    token: str | None = None
    roots: tuple[str, ...] = ()
    buckets: Mapping[str, str] = field(default_factory=dict)
    sweep_s: float = 300.0
    store_options: StoreOptions = field(default_factory=StoreOptions)
    policy: Policy = field(default_factory=Policy)
    max_body_bytes: int = 1_048_576
    log_level: str = "info"


def decider_settings(environment: Mapping[str, str] = os.environ) -> DeciderSettings:
    """Read the decider's settings; raises InvalidInput that names the variable and what it accepts."""
    read = Reader(environment)
    defaults = DeciderSettings()
    return DeciderSettings(
        redis_url=read(REDIS_URL, str, defaults.redis_url),
        queue=read(QUEUE, str, defaults.queue),
        address=read(HTTP_ADDRESS, parse_address, defaults.address),
        token=read(TOKEN, _token, None),
        roots=read(ROOTS, _list, ()),
        buckets=read(BUCKETS, _pairs, {}),
        sweep_s=read(SWEEP_S, number(float, *_SWEEP_RANGE_S), defaults.sweep_s),
        store_options=store_options(environment),
        policy=read(POLICY, parse_policy, defaults.policy),
        max_body_bytes=read(MAX_BODY_BYTES, number(int, *_BODY_RANGE_BYTES), defaults.max_body_bytes),
        log_level=read(LOG_LEVEL, log_level_name, defaults.log_level),
    )


def redis_url(environment: Mapping[str, str] = os.environ) -> str:
    """Return the URL of the Redis that holds queue, cells and cursors."""
    return environment.get(REDIS_URL) or DEFAULT_REDIS_URL


def http_address(environment: Mapping[str, str] = os.environ) -> str:
    """Return `host:port` of the decider's REST API."""
    return environment.get(HTTP_ADDRESS) or DEFAULT_HTTP_ADDRESS


def default_url(environment: Mapping[str, str] = os.environ) -> str:
    """Return the decider's address for clients."""
    return environment.get(URL) or DEFAULT_URL


def log_level(environment: Mapping[str, str] = os.environ) -> str:
    """Return the level of detail of the logs."""
    return Reader(environment)(LOG_LEVEL, log_level_name, "info")


def store_options(environment: Mapping[str, str] = os.environ) -> StoreOptions:
    """Return the options of object stores; the error of an unusable one does not repeat it, it may hold a key."""
    return Reader(environment)(STORE_OPTIONS, _store_options, StoreOptions())


def host_name() -> str:
    """Return this machine's name, by which people know an actor or a decider."""
    return socket.gethostname()


def parse_address(text: str) -> Address:
    """Read `host:port`; an IPv6 address stands in brackets. Raises ValueError."""
    host, colon, port = text.strip().rpartition(":")
    bare = host.removeprefix("[").removesuffix("]")
    bracketed = host != bare
    if not colon or not bare or (":" in bare and not bracketed) or not port.isdecimal() or int(port) > _MAX_PORT:
        raise ValueError("expected host:port such as 127.0.0.1:7420 or [::1]:7420")
    return Address(bare, int(port))


def parse_policy(text: str) -> Policy:
    """Read `target-file-size=64mb,fan-in=8` over the built-in defaults. Raises ValueError."""
    layer = read_properties({PREFIX + name.removeprefix(PREFIX): value for name, value in _pairs(text).items()})
    if layer.issues:
        raise ValueError("; ".join(f"{issue.property}={issue.value}: {issue.reason}" for issue in layer.issues))
    try:
        return apply(Policy(), layer)
    except InvalidInput as problem:
        raise ValueError(str(problem)) from problem


@dataclass(frozen=True, slots=True)
class Reader:
    """Reads one variable at a time; an empty one counts as unset, as shells and charts leave them behind."""

    environment: Mapping[str, str]

    def __call__(self, name: str, parse: Callable[[str], T], default: T) -> T:
        """Return the parsed value, or the default where the variable is unset; raises InvalidInput naming it."""
        text = self.environment.get(name, "")
        if not text.strip():
            return default
        try:
            return parse(text)
        except (ValueError, InvalidInput) as problem:
            shown = "the value" if name in _SECRETS else f"{text!r}"
            raise InvalidInput(f"{name}: {shown} cannot be used: {problem}", field=name) from problem


def _list(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


def _pairs(text: str) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for part in _list(text):
        name, equals, value = part.partition("=")
        if not equals or not name.strip() or not value.strip():
            raise ValueError(f"expected name=value pairs separated by commas, found {part!r}")
        pairs[name.strip()] = value.strip()
    return pairs


def _store_options(text: str) -> StoreOptions:
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


def _token(text: str) -> str:
    token = text.strip()
    # Sixteen characters from a generator are beyond guessing; a shorter word is not.
    if len(token) < 16 or not token.isascii() or " " in token:  # noqa: PLR2004
        raise ValueError("expected at least 16 ASCII characters without blanks")
    return token


def log_level_name(text: str) -> str:
    """Read the level of detail of the logs. Raises ValueError."""
    level = text.strip().lower()
    if level not in _LOG_LEVELS:
        raise ValueError(f"expected one of {', '.join(_LOG_LEVELS)}")
    return level


def number(kind: Callable[[str], N], low: float, high: float) -> Callable[[str], N]:
    """Return the parser of a number from `low` to `high`."""

    def parse(text: str) -> N:
        value = kind(text)
        if not low <= value <= high:
            raise ValueError(f"expected a number from {low:g} to {high:g}")
        return value

    return parse
