"""Every environment variable that Lakewright reads, in one place: name, unit, default, and why that default.

No other module reads the environment, so what is not here has no effect, and a value that cannot be used stops the
start with a message instead of surfacing later.
"""

import os
import re
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar
from urllib.parse import urlsplit

from services.catalog_options import parse_catalogs, parse_store_options, unity_catalogs
from services.redis_socket import socket_path, socket_url
from shared.errors import InvalidInput
from shared.formats.options import FormatOptions
from shared.paths.boundary import Boundary
from shared.paths.locations import canonical_location
from shared.paths.store_options import StoreOptions
from shared.queue.client_settings import SENTINEL_URL_FORM, parse_sentinel_url

T = TypeVar("T")
N = TypeVar("N", int, float)

REDIS_URL = "LAKEWRIGHT_REDIS_URL"
"""Redis or Valkey, with AOF on and `maxmemory-policy noeviction`. Default: the Unix socket of the standalone's Redis,
in a folder of LAKEWRIGHT_DATA_DIR that no other user of the machine can enter."""

QUEUE = "LAKEWRIGHT_QUEUE"
"""Name of the queue that deciders and actors share; queues are isolated by name. Default: `default`."""

GROUPS = "LAKEWRIGHT_GROUPS"
"""Further groups of the queue that the deciders serve, comma-separated, such as `etl,nightly`, or a JSON object with
defaults per group, such as {"etl": {"job-order": "balanced"}, "nightly": {}}. A table belongs to the group that its
property `lakewright.queue` names. Default: none."""

GROUP = "LAKEWRIGHT_GROUP"
"""Group whose jobs the actor runs. Default: the queue itself, for the tables of no other group."""

SUPERVISED = "LAKEWRIGHT_SUPERVISED"
"""`true` in the standalone, which starts and ends actors as the queue's setting `actors` says. Default `false`: the
decider refuses that setting, because something else, such as KEDA, starts actors."""

READY_FILE = "LAKEWRIGHT_READY_FILE"
"""File that exists for as long as an actor takes jobs. Default: `actor.ready` in LAKEWRIGHT_DATA_DIR."""

HTTP_ADDRESS = "LAKEWRIGHT_HTTP_ADDRESS"
"""`host:port` of the REST API. Default: the loopback address, because without a token only local callers are
allowed."""

TOKEN = "LAKEWRIGHT_TOKEN"  # noqa: S105 - the name of a variable, not a secret
"""Bearer token of an administrator, and the token that the command line sends. Default: none. Listening beyond the
loopback address requires a token or a secret for signatures."""

TOKENS = "LAKEWRIGHT_TOKENS"
"""`role:token` pairs, comma-separated; the roles are hook, viewer, operator and admin. A token may be given as
`sha256:<hex>`. Default: none."""

TOKENS_FILE = "LAKEWRIGHT_TOKENS_FILE"
"""File with such pairs, one per line, and `#` comments: for mounted secrets. Default: none."""

HMAC_SECRETS = "LAKEWRIGHT_HMAC_SECRETS"
"""Secrets, comma-separated, that webhooks may be signed with; use two to rotate them. Default: none."""

HMAC_WINDOW_S = "LAKEWRIGHT_HMAC_WINDOW_S"
"""Maximum difference in seconds between a signature's time and the decider's clock. Default 300: allows for retries and
clock skew."""

EVENTS_PER_S = "LAKEWRIGHT_EVENTS_PER_S"
"""Maximum requests per second and client to /v1/events and /v1/scan-reports, each with up to 10,000 of them. Default
1,000: more than a bucket's notifications need, and too few to delay other clients."""

CALLS_PER_S = "LAKEWRIGHT_CALLS_PER_S"
"""Maximum requests per second and client to all other paths. Default 200: people and dashboards need fewer."""

BODY_TIMEOUT_S = "LAKEWRIGHT_BODY_TIMEOUT_S"
"""Seconds within which a request body must have arrived. Default 10: enough for a megabyte over a slow connection."""

REQUEST_TIMEOUT_S = "LAKEWRIGHT_REQUEST_TIMEOUT_S"
"""Seconds after which a request without a response is given up with 503; its sender repeats it. Default 30."""

MAX_CONNECTIONS = "LAKEWRIGHT_MAX_CONNECTIONS"
"""Maximum number of HTTP connections; half of them per address. Default 2,048, or as many as the limit of descriptors
permits. A new one displaces the one that has waited longest without a call."""

TRUSTED_PROXIES = "LAKEWRIGHT_TRUSTED_PROXIES"
"""Addresses or networks of proxies, comma-separated, whose `X-Forwarded-For` names the client for limits. Default:
none; the header is ignored."""

SNS_TOPICS = "LAKEWRIGHT_SNS_TOPICS"
"""ARNs of SNS topics, comma-separated, whose subscriptions are confirmed automatically. Default: none; confirm
them manually."""

SQS_QUEUES = "LAKEWRIGHT_SQS_QUEUES"
"""URLs of SQS queues, comma-separated, whose messages are taken as events; needs the extra `lakewright[sqs]`.
Default: none; events are sent to /v1/events."""

KAFKA_TOPICS = "LAKEWRIGHT_KAFKA_TOPICS"
"""Topics of Kafka, comma-separated, whose messages are taken as events; needs the extra `lakewright[kafka]` and
LAKEWRIGHT_KAFKA_OPTIONS. Default: none."""

KAFKA_OPTIONS = "LAKEWRIGHT_KAFKA_OPTIONS"
"""JSON object with options of librdkafka's consumer, such as {"bootstrap.servers": "kafka:9092", "security.protocol":
"SASL_SSL"}. Default: the group is `lakewright`, and reads new topics from their start."""

WEBHOOK_ORIGINS = "LAKEWRIGHT_WEBHOOK_ORIGINS"
"""Origins, comma-separated, that pass the CloudEvents webhook validation. Default: eventgrid.azure.net."""

ROOTS = "LAKEWRIGHT_ROOTS"
"""Allowed roots: locations, comma-separated, below which tables are discovered and registered from events; a catalog is
`catalog://NAME`. With roots, tables outside of them cannot be registered. Set them for actors, too: links and files
outside of a table are checked against them. Default: none; tables are registered explicitly, at any location."""

ALLOW_EXTERNAL_FILES = "LAKEWRIGHT_ALLOW_EXTERNAL_FILES"
"""`true` to rewrite tables whose log names files outside of the table, as shallow clones do, if these files are below
`LAKEWRIGHT_ROOTS`; set both for deciders and for actors. Default `false`: otherwise a writer could make Lakewright copy
files into its table that only Lakewright may read."""

ADVICE_CPU = "LAKEWRIGHT_ADVICE_CPU"
"""Share of one core with which deciders together replay the histories of all tables for advice; a tenth of it while
jobs or refreshes wait, and 0 for no advice. Default 0.1: some thousand tables a day."""

DRIFT_S = "LAKEWRIGHT_DRIFT_S"
"""Seconds between two checks of a table's state against the checksum in its log; 0 for none. Default 3600: one small
read per hour for each table that changes."""

TENANT = "LAKEWRIGHT_TENANT"
"""Tenant of tables without an explicit one. Default `path`: the first folder below the table's root, as in
`<root>/<tenant>/<table>`; a table directly below its root belongs to `default`."""

DISCOVER = "LAKEWRIGHT_DISCOVER"
"""State of tables that discovery or an event finds: `paused` (default) until they are resumed, or `active`."""

DISCOVERY_S = "LAKEWRIGHT_DISCOVERY_S"
"""Seconds between two discovery scans of the allowed roots; 0 disables them. Default 3600: events register new tables
earlier, and after a loss of Redis the first scan starts at once."""

DISCOVERY_REQUESTS_PER_S = "LAKEWRIGHT_DISCOVERY_REQUESTS_PER_S"
"""Requests per second to the store during discovery. Default 10: two per folder, so 18,000 folders an hour."""

DISCOVERY_DEPTH = "LAKEWRIGHT_DISCOVERY_DEPTH"
"""Maximum folder depth below a root for discovery. Default 5: catalog, schema, table and two to spare."""

BUCKETS = "LAKEWRIGHT_BUCKETS"
"""`bucket=uri` pairs, comma-separated: URI of a bucket that events name, such as `logs=file:///mnt/logs`. Default: the
scheme of the event's source with the bucket's name, such as `s3://logs`."""

STATE = "LAKEWRIGHT_STATE"
"""Folder or object store location where the registry is saved (tables with names, tenants and properties; pauses,
limits and settings of the queue), so that it [outlives Redis](deploy.md#the-saved-registry); one location for each
Redis. Default: none; the standalone uses `registry` in its data directory."""

TABLES_FILE = "LAKEWRIGHT_TABLES_FILE"
"""Path of a YAML file that [declares tables](tables.md#declared-tables), with names, tenants, properties and pauses. It
is read again when it changes. Default: none."""

SWEEP_S = "LAKEWRIGHT_SWEEP_S"
"""Sweep interval: seconds between two refreshes of a table without events. Default 300: a lost event is noticed
within this time, and each interval costs two small requests per table."""

OTLP_ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"
"""URL of a collector of OpenTelemetry that accepts OTLP over HTTP, such as `http://collector:4318`, to which deciders
and actors send [traces](monitoring.md#traces). Needs the extra `lakewright[traces]`; OpenTelemetry's other variables
apply. Default: none; no traces."""

OTLP_TRACES_ENDPOINT = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
"""The same with its path, such as `http://collector:4318/v1/traces`; has precedence. Default: none."""

STORE_OPTIONS = "LAKEWRIGHT_STORE_OPTIONS"
"""JSON object with options of the object stores, such as {"region": "eu-west-1"}; options for one scheme or bucket
(`s3://`, `gs://bucket`) are nested under it: {"s3://logs": {"endpoint": "http://minio:9000", "allow_http": true}}. Read
by deciders and actors. Default: none; the usual environment variables and instance credentials apply."""

BACKGROUND_LOAD = "LAKEWRIGHT_BACKGROUND_LOAD"
"""Share of the cores of the machine, 0 to 1, that other programs may use before [background
work](promises.md#busy-machines) gives way. Read by deciders and actors, on Linux. Default 0.75: merges that go on need
about a quarter of the cores. 1: it never gives way."""

CATALOGS = "LAKEWRIGHT_CATALOGS"
"""JSON object with the options of each [Iceberg](iceberg.md) or [Unity](unity.md) catalog under its name, such as
{"prod": {"uri": "https://catalog.example.com", "warehouse": "lake", "credential": "id:secret"}}; `type` is rest (the
default), sql, glue or hive for Iceberg, or unity. Read by deciders and actors. Default: none."""

ICEBERG_FOLDERS = "LAKEWRIGHT_ICEBERG_FOLDERS"
"""`true` to serve Iceberg tables without a catalog, which are known by their folder. Set it only where one process
commits to such a table at a time: nothing keeps two of them from replacing each other's commits. Default `false`."""

POLICY = "LAKEWRIGHT_POLICY"
"""Defaults of the service for all tables, as in `target-file-size=64mb,min-input-files=8`. Default: those of the
properties themselves."""

PRICES = "LAKEWRIGHT_PRICES"
"""Prices of what runs use: the name of a [preset](promises.md#prices) such as `aws-2024-12`, or a JSON object such as
{"preset": "aws-2024-12", "core-hour": 0.031}. Default: none; core-seconds, bytes and requests are shown without a
cost."""

TENANTS = "LAKEWRIGHT_TENANTS"
"""JSON object with defaults per tenant, which override the defaults of the service, such as
{"sales": {"target-file-size": "256mb"}}. Default: none."""

MAX_BODY_BYTES = "LAKEWRIGHT_MAX_BODY_BYTES"
"""Largest request body in bytes. Default 1 MiB: ten thousand events fit, and the memory suffices
for all requests that may be in progress."""

ARCHIVE = "LAKEWRIGHT_ARCHIVE"
"""Location of the Delta table that archives every decision; Lakewright creates, registers and compacts it.
Default: none; decisions are kept in Redis only, the newest thousand of each table."""

OPTIMIZATIONS = "LAKEWRIGHT_OPTIMIZATIONS"
"""Location of the Delta table that lists every rewrite of every table, for SQL; Lakewright creates, registers and
compacts it. Default: none; history is available from each table's log, the REST API and the command line."""

DATA_DIR = "LAKEWRIGHT_DATA_DIR"
"""Folder for Redis data, logs and scratch space. Default: `.lakewright` in the working directory."""

START_TIMEOUT_S = "LAKEWRIGHT_START_TIMEOUT_S"
"""Seconds that the standalone waits for each of Redis, decider and actor to be ready while the process is alive.
Default 600: Redis loads some 100 MB per second, and on a busy machine the decider's imports may take minutes."""

JAVA = "LAKEWRIGHT_JAVA"
"""`auto`, `system`, `bundled`, or the home of a Java 17 or 21. Default `auto`: the machine's, else the bundled one."""

IVY_DIR = "LAKEWRIGHT_IVY_DIR"
"""Folder of the jars that Delta adds to Spark. Default: `ivy` in the folder of downloads, which is `.cache` in a
checkout and `~/.cache/lakewright` otherwise."""

LOG_LEVEL = "LAKEWRIGHT_LOG_LEVEL"
"""debug, info, warning or error. Default: info."""

LOG_FORMAT = "LAKEWRIGHT_LOG_FORMAT"
"""`json`, one object a line; `console`, lines for people; or `auto`. Default: auto, which is JSON
unless the output is a terminal."""

URL = "LAKEWRIGHT_URL"
"""Address of the decider for the command line. Default: http://127.0.0.1:7420."""

DEFAULT_HTTP_ADDRESS = "127.0.0.1:7420"
DEFAULT_URL = f"http://{DEFAULT_HTTP_ADDRESS}"
DEFAULT_BACKGROUND_LOAD = 0.75
DEFAULT_DATA_DIR = ".lakewright"
_REDIS_SCHEMES = ("redis", "rediss")
_REDIS_URL_FORM = (
    "expected redis://[user:password@]host:port/db, rediss:// or unix:// alike, or "
    f"{SENTINEL_URL_FORM}; "
    "write / # ? @ : % in a password as %2F and so on"
)
_DATABASE = re.compile(r"(/[0-9]*)?")
_LOG_FORMATS = ("auto", "json", "console")
_LOG_LEVELS = ("debug", "info", "warning", "error")
SECRET = frozenset({TOKEN, TOKENS, TOKENS_FILE, HMAC_SECRETS, STORE_OPTIONS, CATALOGS, REDIS_URL, KAFKA_OPTIONS})
"""Variables whose value is never shown."""


def redis_url(environment: Mapping[str, str] = os.environ) -> str:
    """Return the URL of the Redis that holds queue, partitions and cursors, as it was given."""
    return environment.get(REDIS_URL) or default_redis_url(environment)


def default_redis_url(environment: Mapping[str, str] = os.environ) -> str:
    """Return the URL of the standalone's own Redis for this environment's data directory."""
    return socket_url(socket_path(Path(environment.get(DATA_DIR) or DEFAULT_DATA_DIR)))


def parse_redis_url(text: str) -> str:
    """Return a URL that the Redis client can use; raises ValueError, which shows nothing of it, a password least.

    A password with a bare `/`, `#` or `?` ends the address early, and the client would take its parts for a port, a
    database or a host, and show them.
    """
    url = text.strip()
    try:
        if (sentinels := parse_sentinel_url(url)) is not None:
            parse_redis_url(sentinels.primary_url)
            return url
        parts = urlsplit(url)
        host = None if parts.port == 0 else parts.hostname
    except ValueError:
        raise ValueError(_REDIS_URL_FORM) from None
    is_server = parts.scheme in _REDIS_SCHEMES and host and _DATABASE.fullmatch(parts.path)
    is_socket = parts.scheme == "unix" and len(parts.path) > 1
    if not (is_server or is_socket) or "@" in parts.path + parts.query or "#" in url:
        raise ValueError(_REDIS_URL_FORM)
    return url


def http_address(environment: Mapping[str, str] = os.environ) -> str:
    """Return `host:port` of the decider's REST API."""
    return environment.get(HTTP_ADDRESS) or DEFAULT_HTTP_ADDRESS


def default_url(environment: Mapping[str, str] = os.environ) -> str:
    """Return the decider's address for clients."""
    return environment.get(URL) or DEFAULT_URL


def log_level(environment: Mapping[str, str] = os.environ) -> str:
    """Return the level of detail of the logs."""
    return EnvironmentReader(environment)(LOG_LEVEL, log_level_name, "info")


def log_format(environment: Mapping[str, str] = os.environ) -> str:
    """Return the form of the logs."""
    return EnvironmentReader(environment)(LOG_FORMAT, _log_format, "auto")


def start_timeout_s(environment: Mapping[str, str] = os.environ) -> float:
    """Return for how long the standalone waits for a child that is alive and not ready yet, in seconds."""
    return EnvironmentReader(environment)(START_TIMEOUT_S, number(float, 1, 86_400), 600.0)


def store_options(environment: Mapping[str, str] = os.environ) -> StoreOptions:
    """Return the options of object stores; the error of an unusable one does not repeat it, it may hold a key."""
    return EnvironmentReader(environment)(STORE_OPTIONS, parse_store_options, StoreOptions())


def format_options(environment: Mapping[str, str] = os.environ) -> FormatOptions:
    """Return which formats are served beside Delta; the error of an unusable value does not repeat it."""
    read = EnvironmentReader(environment)
    none: Mapping[str, Mapping[str, str]] = {}
    catalogs = read(CATALOGS, parse_catalogs, none)
    return FormatOptions(catalogs, read(ICEBERG_FOLDERS, boolean, default=False), unity_catalogs(catalogs))


def boundary(environment: Mapping[str, str] = os.environ) -> Boundary:
    """Return where tables and their files may lie, links resolved as this machine does."""
    read = EnvironmentReader(environment)
    no_roots: tuple[str, ...] = ()
    return Boundary(
        roots=tuple(map(canonical_location, read(ROOTS, comma_separated, no_roots))),
        allows_external_files=read(ALLOW_EXTERNAL_FILES, boolean, default=False),
        real_path=os.path.realpath,
        is_link=os.path.islink,
    )


def comma_separated(text: str) -> tuple[str, ...]:
    """Read a list with commas; empty parts are left out."""
    return tuple(part.strip() for part in text.split(",") if part.strip())


def boolean(text: str) -> bool:
    """Read true or false. Raises ValueError."""
    if text.strip().lower() not in ("true", "false"):
        raise ValueError("expected true or false")
    return text.strip().lower() == "true"


def host_name() -> str:
    """Return this machine's name, by which people know an actor or a decider."""
    return socket.gethostname()


@dataclass(frozen=True, slots=True)
class EnvironmentReader:
    """Reads one variable at a time; an empty one counts as unset, as shells and charts leave them behind.

    secret: variables whose value no error shows.
    """

    environment: Mapping[str, str]
    secret: frozenset[str] = SECRET

    def __call__(self, name: str, parse: Callable[[str], T], default: T) -> T:
        """Return the parsed value, or the default where the variable is unset; raises InvalidInput naming it."""
        text = self.environment.get(name, "")
        if not text.strip():
            return default
        try:
            return parse(text)
        except (ValueError, InvalidInput) as problem:
            shown = "the value" if name in self.secret else f"{text!r}"
            raise InvalidInput(f"{name}: {shown} cannot be used: {problem}", field=name) from problem


def _log_format(text: str) -> str:
    form = text.strip().lower()
    if form not in _LOG_FORMATS:
        raise ValueError(f"expected one of {', '.join(_LOG_FORMATS)}")
    return form


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
