"""A table's policy: what its owner asked for, as values with a unit, a default and a reason.

`Policy` is the whole that decisions are made from. Its fields are read from table properties through one literal
table, aliases included; a property that cannot be used is an `Issue`, never dropped silently and never guessed.
"""

import hashlib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields
from enum import StrEnum
from fractions import Fraction
from functools import lru_cache
from typing import Any

from shared.errors import InvalidInput
from shared.levels import SMALL_LEVELS, Ladder, ladder
from shared.predicate import parse_filter

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
PREFIX = "lakewright."


class Order(StrEnum):
    """What the order of files is worth: nothing (packed by size), or their time (packed in a row)."""

    NONE = "none"
    TIME = "time"


class MaxMode(StrEnum):
    """The heaviest mode that automatic rewrites may have: minor leaves the top level of small files alone."""

    MINOR = "minor"
    MAJOR = "major"


@dataclass(frozen=True, slots=True)
class Policy:
    """The values in force for one table; sizes in bytes, durations in seconds, None meaning off."""

    enabled: bool = True
    target_bytes: int = 128 * MIB
    fan_in: int = 8
    full_ratio: Fraction = Fraction(3, 4)
    tolerance: Fraction = Fraction(15, 100)
    min_input_files: int = 8
    max_small_files: int = 1000
    settle_after_s: int | None = 6 * 3600
    full_interval_s: int | None = None
    delete_ratio: Fraction | None = Fraction(1, 10)
    time_window_s: int | None = None
    order: Order = Order.NONE
    max_mode: MaxMode = MaxMode.MAJOR
    max_bytes_per_job: int = 16 * GIB
    filter: str | None = None
    # Learned from the table's own rewrites rather than set by anybody; never above 1, which is the safe side.
    shrink: Fraction = Fraction(1)

    def __post_init__(self) -> None:
        if self.full_ratio * self.fan_in <= 1:
            raise InvalidInput(
                f"full-file-ratio {float(self.full_ratio):g} must exceed 1/fan-in = {1 / self.fan_in:g}: "
                "otherwise a file counts as full before it leaves the top level",
                field="full-file-ratio",
            )
        if not 0 < self.shrink <= 1:
            raise InvalidInput(f"shrink {self.shrink} is no share: expected above 0, at most 1", field="shrink")

    @property
    def ladder(self) -> Ladder:
        """The level bounds that this policy implies."""
        return ladder(self.target_bytes, self.fan_in, self.full_ratio, self.shrink)

    @property
    def levels(self) -> int:
        """How many levels, from the smallest on, automatic rewrites may touch."""
        return SMALL_LEVELS if self.max_mode is MaxMode.MAJOR else SMALL_LEVELS - 1

    @property
    def version(self) -> str:
        """Short digest of all values: decisions name the policy they were made under."""
        return hashlib.blake2b(self.encode().encode(), digest_size=4).hexdigest()

    def encode(self) -> str:
        """Write the policy as JSON text; fractions are written as `n/d`."""
        return _encoded(self)

    @staticmethod
    def decode(text: str) -> "Policy":
        """Read what `encode` wrote."""
        values: dict[str, Any] = json.loads(text)
        for name in ("full_ratio", "tolerance", "delete_ratio", "shrink"):
            if values.get(name) is not None:
                values[name] = Fraction(values[name])
        # What was written before a field existed has its default.
        values["order"] = Order(values.get("order", Order.NONE))
        values["max_mode"] = MaxMode(values.get("max_mode", MaxMode.MAJOR))
        # Another release may know more fields; what this one does not know it could not obey anyway.
        known = {f.name for f in fields(Policy)}
        return Policy(**{name: value for name, value in values.items() if name in known})


@lru_cache(maxsize=1_024)
def _encoded(policy: Policy) -> str:
    """Write a policy as text, once: every entry of the ledger carries it."""
    values = {name: str(value) if isinstance(value, Fraction) else value for name, value in asdict(policy).items()}
    return json.dumps(values, sort_keys=True, separators=(",", ":"))


@dataclass(frozen=True, slots=True)
class Issue:
    """A property that could not be used: where it stands, what it says, and why that is not usable."""

    property: str
    value: str
    reason: str


@dataclass(frozen=True, slots=True)
class Layer:
    """What one source (a request, a table, a tenant, the service) says: field name to value and property name."""

    values: Mapping[str, Any] = field(default_factory=dict)
    named: Mapping[str, str] = field(default_factory=dict)
    issues: tuple[Issue, ...] = ()


Parser = Callable[[str], Any]

_SIZE_UNITS = {"": 1, "b": 1, "k": KIB, "kb": KIB, "kib": KIB, "m": MIB, "mb": MIB, "mib": MIB}
_SIZE_UNITS |= {"g": GIB, "gb": GIB, "gib": GIB}
_TIME_UNITS = {"s": 1, "sec": 1, "second": 1, "min": 60, "m": 60, "minute": 60, "h": 3600, "hour": 3600}
_TIME_UNITS |= {"d": 86400, "day": 86400}
_QUANTITY = re.compile(r"(?:interval )?\s*(\d+(?:\.\d+)?)\s*([a-z]*)")


def parse_size(text: str) -> int:
    """Read a size such as `128mb`, `1 GiB` or `1048576` into bytes; kb, mb and gb are powers of 1024, as in Spark."""
    match = _QUANTITY.fullmatch(text.strip().lower())
    if match is None or match[2] not in _SIZE_UNITS:
        raise ValueError("expected a size such as 128mb, 1GiB or a number of bytes")
    return int(Fraction(match[1]) * _SIZE_UNITS[match[2]])


def parse_duration(text: str) -> int | None:
    """Read a duration such as `6 h`, `30min` or `interval 2 days` into seconds; `off` is None."""
    lowered = text.strip().lower()
    if lowered == "off":
        return None
    match = _QUANTITY.fullmatch(lowered)
    unit = match[2] if match else ""
    if match is None or (unit not in _TIME_UNITS and unit.removesuffix("s") not in _TIME_UNITS):
        raise ValueError("expected a duration with its unit such as 30s, 15min, 6h, 2 days, or off")
    seconds = int(Fraction(match[1]) * _TIME_UNITS.get(unit, _TIME_UNITS.get(unit.removesuffix("s"), 0)))
    if seconds <= 0:
        raise ValueError("expected a duration above zero, or off")
    return seconds


def _boolean(text: str) -> bool:
    match text.strip().lower():
        case "true":
            return True
        case "false":
            return False
        case _:
            raise ValueError("expected true or false")


def _size(text: str) -> int:
    size = parse_size(text)
    # Below 64 KiB a Parquet file is mostly footer; above 16 GiB no engine splits one file well.
    if not 64 * KIB <= size <= 16 * GIB:
        raise ValueError("expected a size from 64 KiB to 16 GiB")
    return size


def _job_size(text: str) -> int:
    size = parse_size(text)
    # Below 64 KiB no file can be written; above 1 TiB a bound bounds nothing.
    if not 64 * KIB <= size <= 1024 * GIB:
        raise ValueError("expected a size from 64 KiB to 1 TiB")
    return size


def _integer(low: int, high: int) -> Parser:
    def parse(text: str) -> int:
        if not re.fullmatch(r"\d{1,12}", text.strip()) or not low <= int(text) <= high:
            raise ValueError(f"expected a whole number from {low} to {high}")
        return int(text)

    return parse


def _share(low: str, high: str) -> Parser:
    def parse(text: str) -> Fraction:
        if not re.fullmatch(r"\d{1,3}(\.\d{1,9})?", text.strip()):
            raise ValueError(f"expected a number from {low} to {high}, such as 0.15")
        share = Fraction(text.strip())
        if not Fraction(low) <= share <= Fraction(high):
            raise ValueError(f"expected a number from {low} to {high}")
        return share

    return parse


def _share_or_off(low: str, high: str) -> Parser:
    share = _share(low, high)
    return lambda text: None if text.strip().lower() == "off" else share(text)


def _filter(text: str) -> str | None:
    if text.strip().lower() == "all":
        return None
    parse_filter(text.strip())
    return text.strip()


def _choice(kind: type[StrEnum]) -> Parser:
    def parse(text: str) -> StrEnum:
        try:
            return kind(text.strip().lower())
        except ValueError:
            raise ValueError(f"expected one of {', '.join(kind)}") from None

    return parse


def _milliseconds(text: str) -> int | None:
    """Amoro writes intervals as whole milliseconds and -1 for off."""
    if text.strip() == "-1":
        return None
    if not re.fullmatch(r"\d{4,15}", text.strip()):
        raise ValueError("expected milliseconds, at least 1000, or -1 for off")
    return int(text) // 1000


@dataclass(frozen=True, slots=True)
class Property:
    """One policy field as a table property: its name behind `lakewright.`, its parser, meaning, and foreign names."""

    name: str
    sets: str
    parse: Parser
    meaning: str
    aliases: Mapping[str, Parser] = field(default_factory=dict)


PROPERTIES: tuple[Property, ...] = (
    Property(
        "enabled",
        "enabled",
        _boolean,
        "optimize this table automatically",
        {"use.optimization.autoOptimize.enabled": _boolean, "self-optimizing.enabled": _boolean},
    ),
    Property(
        "target-file-size",
        "target_bytes",
        _size,
        "size that files should reach",
        {"delta.targetFileSize": _size, "self-optimizing.target-size": _size, "write.target-file-size-bytes": _size},
    ),
    # A fan-in of 1 would be no ladder; above 64 six levels span more than any file.
    Property(
        "fan-in",
        "fan_in",
        _integer(2, 64),
        "ratio between neighbouring levels",
        {"self-optimizing.fragment-ratio": _integer(2, 64)},
    ),
    Property(
        "full-file-ratio",
        "full_ratio",
        _share("0.25", "1"),
        "share of the target from which a file is left alone",
        {"self-optimizing.min-target-size-ratio": _share("0.25", "1")},
    ),
    Property("tolerance", "tolerance", _share("0", "1"), "shortfall, as a share of the target, that is tolerated"),
    Property(
        "min-input-files",
        "min_input_files",
        _integer(2, 10_000),
        "inputs that make a job worth it",
        {"self-optimizing.minor.trigger.file-count": _integer(2, 10_000)},
    ),
    Property(
        "max-small-files",
        "max_small_files",
        _integer(2, 1_000_000),
        "small files per cell above which the tolerance no longer holds work back",
    ),
    Property("settle-after", "settle_after_s", parse_duration, "quiet time before the last merge, or off"),
    Property(
        "full-interval",
        "full_interval_s",
        parse_duration,
        "time between full rewrites, or off",
        {"self-optimizing.full.trigger.interval": _milliseconds},
    ),
    Property(
        "delete-ratio",
        "delete_ratio",
        _share_or_off("0.001", "1"),
        "share of deleted rows from which a file is rewritten even alone, or off",
        {"self-optimizing.major.trigger.duplicate-ratio": _share("0.001", "1")},
    ),
    Property("time-window", "time_window_s", parse_duration, "files merge only within one window of time, or off"),
    Property("order", "order", _choice(Order), "none packs files by size, time packs neighbours in time"),
    Property(
        "filter",
        "filter",
        _filter,
        "partitions that may be touched, such as dt >= '2026-01-01', or all",
        {"self-optimizing.filter": _filter},
    ),
    Property("max-mode", "max_mode", _choice(MaxMode), "heaviest automatic rewrite, minor or major"),
    Property(
        "max-bytes-per-job",
        "max_bytes_per_job",
        _job_size,
        "bytes that one job rewrites before it goes back to the queue",
        {"use.optimization.bytes-per-iter": _job_size, "self-optimizing.max-task-size-bytes": _job_size},
    ),
)

REFUSED: Mapping[str, str] = {
    "self-optimizing.minor.trigger.interval": (
        "means the time between minor runs, which nothing here waits for; use lakewright.settle-after for the quiet "
        "time before the last merge"
    ),
}
"""Foreign properties that look like one of ours and mean something else: named, with what to use instead."""


def read_properties(configuration: Mapping[str, str]) -> Layer:
    """Read a table's configuration into a layer; an own property wins over its aliases, in the order listed."""
    values: dict[str, Any] = {}
    named: dict[str, str] = {}
    issues: list[Issue] = []
    known = {PREFIX + prop.name for prop in PROPERTIES}
    for prop in PROPERTIES:
        spellings = {PREFIX + prop.name: prop.parse, **prop.aliases}
        for name, parse in spellings.items():
            if name not in configuration or prop.sets in values:
                continue
            try:
                values[prop.sets] = parse(configuration[name])
                named[prop.sets] = name
            except ValueError as problem:
                issues.append(Issue(name, configuration[name], str(problem)))
    issues += [
        Issue(name, value, f"unknown property; known are {', '.join(sorted(known))}")
        for name, value in sorted(configuration.items())
        if name.startswith(PREFIX) and name not in known
    ]
    issues += [Issue(name, configuration[name], why) for name, why in REFUSED.items() if name in configuration]
    return Layer(values, named, tuple(issues))


def terms(configuration: Mapping[str, str]) -> str:
    """Return a digest of all properties that can bear on the policy: while it stays, so does what they ask for."""
    known = {name for prop in PROPERTIES for name in prop.aliases} | REFUSED.keys()
    said = sorted((name, value) for name, value in configuration.items() if name in known or name.startswith(PREFIX))
    return hashlib.blake2b(json.dumps(said).encode(), digest_size=8).hexdigest()


def apply(base: Policy, *layers: Layer) -> Policy:
    """Return `base` with the values of the layers laid over it, the later ones winning.

    Raises InvalidInput when values that are fine alone contradict each other.
    """
    merged = {f.name: getattr(base, f.name) for f in fields(base)}
    for layer in layers:
        merged.update(layer.values)
    return Policy(**merged)
