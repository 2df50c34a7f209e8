"""What-if: what a table would have cost under another policy, under others' rules, or left alone; pure.

Cost is counted in core-seconds: what rewriting takes, and what readers pay for every file that lies there while they
read. The recommendation is the cheapest of what was replayed, with the curve beside it, and only if it saves enough to
be worth a change.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction

from decider.decide.history import History
from decider.decide.replay import Replayed, replay_lakewright, replay_peer, replay_untouched
from decider.decide.rules import PEERS
from shared.policy import GIB, MIB, Policy

Tick = Callable[[str], None]
"""Told what is replayed next: progress for people."""

TARGETS_BYTES = (32 * MIB, 64 * MIB, 128 * MIB, 256 * MIB, 512 * MIB, GIB)
"""Targets that are tried: what engines split and read well."""

FAN_INS = (4, 8, 16)
TOLERANCES = (Fraction(5, 100), Fraction(15, 100), Fraction(30, 100))

WORTH_CHANGING = 0.05
"""Share of the cost that a change of policy has to save before it is recommended: below that it is noise."""

MS_PER_HOUR = 3_600_000


@dataclass(frozen=True, slots=True)
class Prices:
    """What things cost, in core-seconds: assumptions that whoever asks can replace by figures of their own.

    write_s_per_gib: rewriting 1 GiB; a core decodes and encodes about 50 MB/s of Parquet. open_s: what one more file
    costs a query: footer, task, request. queries_per_hour: queries an hour that read the whole table. tail_hours: how
    long the files that are left at the end go on being read, without which a short history would weigh no reader.
    """

    write_s_per_gib: float = 20.0
    open_s: float = 0.05
    queries_per_hour: float = 10.0
    tail_hours: float = 24.0

    def cost_s(self, done: Replayed) -> float:
        """Return what a replay cost: bytes rewritten x write price + files over time x read price."""
        return self.write_s(done) + self.read_s(done)

    def write_s(self, done: Replayed) -> float:
        """Return the core-seconds of rewriting."""
        return done.bytes_rewritten / GIB * self.write_s_per_gib

    def read_s(self, done: Replayed) -> float:
        """Return the core-seconds that readers spend on opening files."""
        return (done.file_ms + done.tail_file_ms) / MS_PER_HOUR * self.queries_per_hour * self.open_s

    @property
    def tail_ms(self) -> int:
        """How long replays go on after the last commit."""
        return round(self.tail_hours * MS_PER_HOUR)


@dataclass(frozen=True, slots=True)
class Option:
    """A policy that was replayed, and what it cost in core-seconds."""

    policy: Policy
    replayed: Replayed
    cost_s: float


@dataclass(frozen=True, slots=True)
class Comparison:
    """The same history left alone, under our rule, and under others'."""

    nothing: Replayed
    ours: Replayed
    peers: tuple[Replayed, ...]


@dataclass(frozen=True, slots=True)
class Recommendation:
    """The policy to take; `curve` holds all targets, `tried` every option; `is_change` says whether to change it."""

    best: Option
    current: Option
    nothing_cost_s: float
    curve: tuple[Option, ...]
    tried: tuple[Option, ...]
    is_change: bool
    sentence: str

    @property
    def properties(self) -> dict[str, str]:
        """The table properties to set, none where nothing is to be changed."""
        return _properties(self.best.policy, self.current.policy) if self.is_change else {}


def compare(history: History, policy: Policy, prices: Prices, tick: Tick = lambda _: None) -> Comparison:
    """Replay a history without rewrites, under a policy of ours, and under each rule of others."""
    tick("left alone")
    nothing = replay_untouched(history, policy, tail_ms=prices.tail_ms)
    tick("Lakewright")
    ours = replay_lakewright(history, policy, tail_ms=prices.tail_ms)
    peers = []
    for rule in PEERS:
        tick(rule.title)
        peers.append(replay_peer(history, policy, rule, tail_ms=prices.tail_ms))
    return Comparison(nothing, ours, tuple(peers))


STEPS_OF_COMPARISON = 2 + len(PEERS)
STEPS_OF_RECOMMENDATION = 1 + len(TARGETS_BYTES) + len(FAN_INS) - 1 + len(TOLERANCES) - 1
"""Replays of a recommendation at most; a progress bar is as long as that."""


def recommend(
    history: History, policy: Policy, prices: Prices, nothing: Replayed, tick: Tick = lambda _: None
) -> Recommendation:
    """Find the target, then the fan-in, then the tolerance of least cost: one after the other, not all at once.

    The three hardly depend on each other: the target decides how far bytes travel, the fan-in how often, the tolerance
    what is left alone.
    """
    tried: dict[tuple[int, int, Fraction], Option] = {}

    def option(candidate: Policy) -> Option:
        key = (candidate.target_bytes, candidate.fan_in, candidate.tolerance)
        if key not in tried:
            tick(f"target {_size(key[0])}, fan-in {key[1]}, tolerance {float(key[2]):g}")
            done = replay_lakewright(history, candidate, tail_ms=prices.tail_ms)
            tried[key] = Option(candidate, done, prices.cost_s(done))
        return tried[key]

    def cheapest(candidates: list[Policy]) -> Option:
        return min((option(candidate) for candidate in candidates), key=lambda one: one.cost_s)

    current = option(policy)
    targets = sorted({*TARGETS_BYTES, policy.target_bytes})
    curve = tuple(option(replace(policy, target_bytes=target)) for target in targets)
    best = min(curve, key=lambda one: one.cost_s)
    best = cheapest([best.policy, *(replace(best.policy, fan_in=fan_in) for fan_in in FAN_INS)])
    best = cheapest([best.policy, *(replace(best.policy, tolerance=share) for share in TOLERANCES)])
    is_change = best.cost_s < (1 - WORTH_CHANGING) * current.cost_s
    chosen = best if is_change else current
    left_alone_s = prices.cost_s(nothing)
    sentence = _sentence(chosen, current, left_alone_s, prices, is_change=is_change)
    return Recommendation(chosen, current, left_alone_s, curve, tuple(tried.values()), is_change, sentence)


def _sentence(best: Option, current: Option, left_alone_s: float, prices: Prices, *, is_change: bool) -> str:
    if not best.replayed.jobs and best.cost_s == left_alone_s:
        return "Nothing to change: no policy that was tried would have rewritten anything in this history."
    if left_alone_s <= best.cost_s:
        return (
            "Leave this table alone: its files cost readers less than any rewriting would. "
            "Set lakewright.enabled=false, and look again when it is written differently."
        )
    saved = 1 - best.cost_s / left_alone_s
    # 100 % would be a promise that nobody keeps.
    share = f"{saved:.0%}" if saved < 0.99 else "over 99%"  # noqa: PLR2004 - from where on rounding would say 100
    gain = f"against no compaction it saves {share} of what rewriting and reading cost together"
    if not is_change:
        return f"Keep the policy: nothing that was tried is {WORTH_CHANGING:.0%} cheaper, and {gain}."
    said = ", ".join(f"{name}={value}" for name, value in _properties(best.policy, current.policy).items())
    reading = prices.read_s(current.replayed) / current.cost_s
    reason = (
        f"Reading is {reading:.0%} of what the table costs now, so fewer files pay"
        if best.replayed.mean_files < current.replayed.mean_files
        else f"Rewriting is {1 - reading:.0%} of what the table costs now, so rewriting less pays"
    )
    return (
        f"Set {said}. {reason}: on average "
        f"{best.replayed.mean_files:,.0f} files instead of {current.replayed.mean_files:,.0f}, and "
        f"{_size(best.replayed.bytes_rewritten)} rewritten instead of {_size(current.replayed.bytes_rewritten)}. "
        f"At {prices.queries_per_hour:g} queries an hour that costs {1 - best.cost_s / current.cost_s:.0%} "
        f"less; {gain}."
    )


def _properties(best: Policy, current: Policy) -> dict[str, str]:
    found = {}
    if best.target_bytes != current.target_bytes:
        found["lakewright.target-file-size"] = _size(best.target_bytes).replace(" ", "")
    if best.fan_in != current.fan_in:
        found["lakewright.fan-in"] = str(best.fan_in)
    if best.tolerance != current.tolerance:
        found["lakewright.tolerance"] = f"{float(best.tolerance):g}"
    return found


def _size(count_bytes: int) -> str:
    for unit, name in ((GIB, "GiB"), (MIB, "MiB"), (1024, "KiB")):
        if count_bytes >= unit:
            return f"{count_bytes / unit:.3g} {name}"
    return f"{count_bytes} B"
