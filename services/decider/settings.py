"""Settings of the decider from its environment; a value that cannot be used stops the start and is named."""

import ipaddress
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from decider.background.discovery import DiscoveryLimits
from decider.gateway.concurrency import CallLimits
from decider.gateway.credentials import Credentials, Role, TokenHash, parse_secrets, parse_tokens
from decider.state.effective_policy import ROW_REMOVAL
from services.settings import (
    ADVICE_CPU,
    ALLOW_EXTERNAL_FILES,
    ARCHIVE,
    BACKGROUND_LOAD,
    BODY_TIMEOUT_S,
    BUCKETS,
    CALLS_PER_S,
    DEFAULT_BACKGROUND_LOAD,
    DISCOVER,
    DISCOVERY_DEPTH,
    DISCOVERY_REQUESTS_PER_S,
    DISCOVERY_S,
    DRIFT_S,
    EVENTS_PER_S,
    GROUPS,
    HMAC_SECRETS,
    HMAC_WINDOW_S,
    HTTP_ADDRESS,
    KAFKA_OPTIONS,
    KAFKA_TOPICS,
    LOG_LEVEL,
    MAX_BODY_BYTES,
    MAX_CONNECTIONS,
    OPTIMIZATIONS,
    POLICY,
    PRICES,
    QUEUE,
    REDIS_URL,
    REQUEST_TIMEOUT_S,
    ROOTS,
    SNS_TOPICS,
    SQS_QUEUES,
    STATE,
    SUPERVISED,
    SWEEP_S,
    TABLES_FILE,
    TENANT,
    TENANTS,
    TOKEN,
    TOKENS,
    TOKENS_FILE,
    TRUSTED_PROXIES,
    WEBHOOK_ORIGINS,
    EnvironmentReader,
    boolean,
    comma_separated,
    default_redis_url,
    format_options,
    log_level_name,
    number,
    parse_redis_url,
    store_options,
)
from shared.errors import InvalidInput
from shared.formats.options import FormatOptions
from shared.paths.locations import canonical_location
from shared.paths.store_options import StoreOptions
from shared.policy import parsers
from shared.policy.policy import Policy, PolicyLayer, apply
from shared.policy.properties import as_properties, read_properties
from shared.prices import Prices, parse_prices
from shared.queue.limits import MAX_GROUPS, require_name

_MAX_PORT = 65_535
_MONTH_S = 30 * 86_400.0
_DISCOVERY_RATE = (0.1, 10_000.0)
_DISCOVERY_DEPTHS = (0, 20)
_SWEEP_RANGE_S = (1.0, 86_400.0)
_BODY_RANGE_BYTES = (1_024, 64 * 1_048_576)
_WINDOW_RANGE_S = (1.0, 3_600.0)
_RATE_RANGE_PER_S = (0.1, 1_000_000.0)
_BODY_TIMEOUT_RANGE_S = (0.1, 300.0)
_REQUEST_TIMEOUT_RANGE_S = (1.0, 600.0)
_CONNECTIONS_RANGE = (16, 1_000_000)


@dataclass(frozen=True, slots=True)
class Address:
    """Address to listen on; `host` may be a name or an IP address, in brackets for IPv6 in the text form."""

    host: str
    port: int


@dataclass(frozen=True, slots=True)
class AccessSettings:
    """Who may call or send: the administrator's token, other tokens, secrets, SNS topics, webhooks' origins; queues.

    trusted_proxies: addresses or networks of proxies that are believed whom they forward for.
    """

    token: str | None = field(default=None, repr=False)
    known: Credentials = field(default_factory=Credentials)
    sns_topics: tuple[str, ...] = ()
    webhook_origins: tuple[str, ...] = ("eventgrid.azure.net",)
    trusted_proxies: tuple[str, ...] = ()
    sqs_queues: tuple[str, ...] = ()
    kafka_topics: tuple[str, ...] = ()
    kafka_options: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def credentials(self) -> Credentials:
        """Return all credentials, the administrator's token first."""
        if self.token is None:
            return self.known
        return replace(self.known, tokens=(TokenHash.of(Role.ADMIN, self.token), *self.known.tokens))


@dataclass(frozen=True, slots=True)
class LocationSettings:
    """Where tables may lie, how their stores are opened, whose they are by default, and where the registry is saved.

    `tables_file`: file that declares tables, None if there is none. `is_discovery_active`: tables that are found, and
    not registered by a person, are rewritten at once; otherwise they are paused.
    """

    roots: tuple[str, ...] = ()
    buckets: Mapping[str, str] = field(default_factory=dict)
    tenant: str = "path"
    store_options: StoreOptions = field(default_factory=StoreOptions, repr=False)
    formats: FormatOptions = field(default_factory=FormatOptions)
    allow_external_files: bool = False
    state: str | None = None
    tables_file: Path | None = None
    is_discovery_active: bool = False


@dataclass(frozen=True, slots=True)
class TrackingSettings:
    """Policy defaults of the service, tenants and groups, and seconds between two sweeps and two drift checks.

    advice_cpu: share of one core for advice; 0: none is made. background_load: share of the machine's cores that others
    use, above which advice has a tenth of that; 1: it never has less. prices: of what runs use, None without any.
    is_supervised: whether actors are started and ended as the queue's setting says.
    """

    policy: Policy = field(default_factory=Policy)
    tenants: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    groups: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    sweep_s: float = 300.0
    drift_s: float = 3_600.0
    advice_cpu: float = 0.1
    background_load: float = DEFAULT_BACKGROUND_LOAD
    prices: Prices | None = None
    is_supervised: bool = False


@dataclass(frozen=True, slots=True)
class ArchiveSettings:
    """Locations of the Delta tables that keep decisions and rewrites; None where none is wanted."""

    ledger: str | None = None
    rewrites: str | None = None


@dataclass(frozen=True, slots=True)
class DeciderSettings:
    """Settings of a decider, in groups by subject; see the variables for units and reasons."""

    redis_url: str = field(default_factory=default_redis_url, repr=False)
    queue: str = "default"
    address: Address = Address("127.0.0.1", 7420)
    log_level: str = "info"
    access: AccessSettings = field(default_factory=AccessSettings)
    limits: CallLimits = field(default_factory=CallLimits)
    locations: LocationSettings = field(default_factory=LocationSettings)
    discovery: DiscoveryLimits = field(default_factory=DiscoveryLimits)
    tracking: TrackingSettings = field(default_factory=TrackingSettings)
    archives: ArchiveSettings = field(default_factory=ArchiveSettings)


def decider_settings(environment: Mapping[str, str] = os.environ) -> DeciderSettings:
    """Read the decider's settings; raises InvalidInput that names the variable and what it accepts."""
    read = EnvironmentReader(environment)
    defaults = DeciderSettings()
    return DeciderSettings(
        redis_url=read(REDIS_URL, parse_redis_url, default_redis_url(environment)),
        queue=read(QUEUE, parsers.group, defaults.queue),
        address=read(HTTP_ADDRESS, parse_address, defaults.address),
        log_level=read(LOG_LEVEL, log_level_name, defaults.log_level),
        access=_access(read),
        limits=_limits(read),
        locations=_locations(read, environment),
        discovery=_discovery(read),
        tracking=_tracking(read),
        archives=ArchiveSettings(
            ledger=read(ARCHIVE, str.strip, None),
            rewrites=read(OPTIMIZATIONS, str.strip, None),
        ),
    )


def _path(text: str) -> Path:
    return Path(text.strip())


def _networks(text: str) -> tuple[str, ...]:
    found = comma_separated(text)
    for one in found:
        ipaddress.ip_network(one)  # Raises ValueError with the reason.
    return found


def _queue_urls(text: str) -> tuple[str, ...]:
    urls = comma_separated(text)
    if not all(url.startswith(("https://", "http://")) for url in urls):
        raise ValueError("expected URLs of queues, such as https://sqs.eu-west-1.amazonaws.com/123456789012/commits")
    return urls


def _kafka_options(text: str) -> dict[str, str]:
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, dict) or not all(isinstance(value, str | int) for value in found.values()):
        raise ValueError('expected a JSON object of texts and numbers, such as {"bootstrap.servers": "kafka:9092"}')
    return {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in found.items()}


def _access(read: EnvironmentReader) -> AccessSettings:
    defaults = AccessSettings()
    known = Credentials(
        tokens=(
            *read(TOKENS, parse_tokens, defaults.known.tokens),
            *read(TOKENS_FILE, _tokens_of_file, defaults.known.tokens),
        ),
        secrets=read(HMAC_SECRETS, parse_secrets, defaults.known.secrets),
        window_s=read(HMAC_WINDOW_S, number(float, *_WINDOW_RANGE_S), defaults.known.window_s),
    )
    no_topics: tuple[str, ...] = ()
    no_options: dict[str, str] = {}
    topics, options = read(KAFKA_TOPICS, comma_separated, no_topics), read(KAFKA_OPTIONS, _kafka_options, no_options)
    if topics and "bootstrap.servers" not in options:
        raise InvalidInput(f"{KAFKA_OPTIONS}: bootstrap.servers is missing, and {KAFKA_TOPICS} needs it")
    return AccessSettings(
        token=read(TOKEN, _token, None),
        known=known,
        sns_topics=read(SNS_TOPICS, comma_separated, ()),
        webhook_origins=read(WEBHOOK_ORIGINS, comma_separated, defaults.webhook_origins),
        trusted_proxies=read(TRUSTED_PROXIES, _networks, ()),
        sqs_queues=read(SQS_QUEUES, _queue_urls, ()),
        kafka_topics=topics,
        kafka_options=options,
    )


def _limits(read: EnvironmentReader) -> CallLimits:
    defaults = CallLimits()
    return CallLimits(
        max_body_bytes=read(MAX_BODY_BYTES, number(int, *_BODY_RANGE_BYTES), defaults.max_body_bytes),
        body_timeout_s=read(BODY_TIMEOUT_S, number(float, *_BODY_TIMEOUT_RANGE_S), defaults.body_timeout_s),
        events_per_s=read(EVENTS_PER_S, number(float, *_RATE_RANGE_PER_S), defaults.events_per_s),
        calls_per_s=read(CALLS_PER_S, number(float, *_RATE_RANGE_PER_S), defaults.calls_per_s),
        max_connections=read(MAX_CONNECTIONS, number(int, *_CONNECTIONS_RANGE), defaults.max_connections),
        request_timeout_s=read(REQUEST_TIMEOUT_S, number(float, *_REQUEST_TIMEOUT_RANGE_S), defaults.request_timeout_s),
    )


def _locations(read: EnvironmentReader, environment: Mapping[str, str]) -> LocationSettings:
    defaults = LocationSettings()
    return LocationSettings(
        roots=read(ROOTS, comma_separated, ()),
        buckets=read(BUCKETS, _pairs, {}),
        tenant=read(TENANT, _tenant, defaults.tenant),
        store_options=store_options(environment),
        formats=format_options(environment),
        allow_external_files=read(ALLOW_EXTERNAL_FILES, boolean, defaults.allow_external_files),
        state=read(STATE, canonical_location, None),
        tables_file=read(TABLES_FILE, _path, None),
        is_discovery_active=read(DISCOVER, _is_active, defaults.is_discovery_active),
    )


def _is_active(text: str) -> bool:
    found = {"active": True, "paused": False}.get(text.strip().lower())
    if found is None:
        raise ValueError("expected paused or active")
    return found


def _discovery(read: EnvironmentReader) -> DiscoveryLimits:
    defaults = DiscoveryLimits()
    return DiscoveryLimits(
        interval_s=read(DISCOVERY_S, number(float, 0, _MONTH_S), defaults.interval_s),
        requests_per_s=read(DISCOVERY_REQUESTS_PER_S, number(float, *_DISCOVERY_RATE), defaults.requests_per_s),
        depth=read(DISCOVERY_DEPTH, number(int, *_DISCOVERY_DEPTHS), defaults.depth),
    )


def _tracking(read: EnvironmentReader) -> TrackingSettings:
    defaults = TrackingSettings()
    return TrackingSettings(
        policy=read(POLICY, parse_policy, defaults.policy),
        tenants=read(TENANTS, _properties_by_name, {}),
        groups=read(GROUPS, parse_groups, {}),
        sweep_s=read(SWEEP_S, number(float, *_SWEEP_RANGE_S), defaults.sweep_s),
        drift_s=read(DRIFT_S, number(float, 0, _MONTH_S), defaults.drift_s),
        advice_cpu=read(ADVICE_CPU, number(float, 0, 1), defaults.advice_cpu),
        background_load=read(BACKGROUND_LOAD, number(float, 0, 1), defaults.background_load),
        prices=read(PRICES, parse_prices, None),
        is_supervised=read(SUPERVISED, boolean, defaults.is_supervised),
    )


def parse_address(text: str) -> Address:
    """Read `host:port`; an IPv6 address is in brackets. Raises ValueError."""
    host, colon, port = text.strip().rpartition(":")
    bare = host.removeprefix("[").removesuffix("]")
    bracketed = host != bare
    if not colon or not bare or (":" in bare and not bracketed) or not port.isdecimal() or int(port) > _MAX_PORT:
        raise ValueError("expected host:port such as 127.0.0.1:7420 or [::1]:7420")
    return Address(bare, int(port))


def parse_policy(text: str) -> Policy:
    """Read `target-file-size=64mb,fan-in=8` over the built-in defaults. Raises ValueError."""
    layer = read_properties(as_properties(_pairs(text)))
    if layer.issues:
        raise ValueError("; ".join(f"{issue.property}={issue.value}: {issue.reason}" for issue in layer.issues))
    _require_owners_left_out(layer)
    try:
        return apply(Policy(), layer)
    except InvalidInput as problem:
        raise ValueError(str(problem)) from problem


def _require_owners_left_out(layer: PolicyLayer) -> None:
    """Raise ValueError where defaults would delete files or rows, or yield: only a table's own properties may."""
    if "yield_to_writers" in layer.values:
        raise ValueError("yield-to-writers loses rewrites, and no default does: set it on each table")
    if layer.values.get("vacuum"):
        raise ValueError("vacuum=on deletes files, and no default does: set lakewright.vacuum=on on each table")
    for field_name in sorted(ROW_REMOVAL & layer.values.keys()):
        name = layer.property_names[field_name]
        raise ValueError(f"{name} decides which rows are removed, and no default does: set it on each table")


def _tenant(text: str) -> str:
    require_name(text, "tenant")
    return text


def _pairs(text: str) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for part in comma_separated(text):
        name, equals, value = part.partition("=")
        if not equals or not name.strip() or not value.strip():
            raise ValueError(f"expected name=value pairs separated by commas, found {part!r}")
        pairs[name.strip()] = value.strip()
    return pairs


def parse_groups(text: str) -> dict[str, dict[str, str]]:
    """Read `etl,nightly`, or a JSON object of their defaults. Raises ValueError."""
    is_listed = not text.strip().startswith("{")
    found = {name: dict[str, str]() for name in comma_separated(text)} if is_listed else _properties_by_name(text)
    for name, properties in found.items():
        if parsers.group(name) != name:
            raise ValueError(f"{name!r} is no name of a group; use 1 to 40 of a-z, 0-9, _ and -")
        if "queue" in read_properties(properties).values:
            raise ValueError(f"the defaults of group {name!r} name a queue, but the table's own property decides")
    if len(found) > MAX_GROUPS:
        raise ValueError(f"{len(found)} groups; a queue has at most {MAX_GROUPS}")
    return found


def _properties_by_name(text: str) -> dict[str, dict[str, str]]:
    found = json.loads(text)
    if not isinstance(found, dict) or not all(isinstance(values, dict) for values in found.values()):
        raise ValueError('expected a JSON object of objects, such as {"sales": {"target-file-size": "256mb"}}')
    spelled = {
        tenant: {name: value if isinstance(value, str) else json.dumps(value) for name, value in values.items()}
        for tenant, values in found.items()
    }
    properties = {tenant: as_properties(values) for tenant, values in spelled.items()}
    for values in properties.values():
        _require_owners_left_out(read_properties(values))
    return properties


def _token(text: str) -> str:
    token = text.strip()
    TokenHash.of(Role.ADMIN, token)
    return token


MAX_TOKENS_FILE_BYTES = 1_048_576
"""Room for ten thousand tokens; what is named by mistake may be endless."""


def _tokens_of_file(path: str) -> tuple[TokenHash, ...]:
    try:
        with Path(path.strip()).open("rb") as file:
            text = file.read(MAX_TOKENS_FILE_BYTES + 1).decode()
    except OSError as problem:
        raise ValueError(f"the file cannot be read: {problem.strerror}") from problem
    if len(text) > MAX_TOKENS_FILE_BYTES:
        raise ValueError(f"the file has more than {MAX_TOKENS_FILE_BYTES} bytes")
    return parse_tokens(text)
