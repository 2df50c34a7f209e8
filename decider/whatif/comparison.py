"""Compares what a table would have cost under another policy, under others' rules, or left alone; pure.

Cost is counted in core-seconds: the cost of rewriting, and the cost to readers of every file that exists while they
read. The recommendation is the cheapest of what was replayed, with the curve beside it, and only if it saves enough to
be worth a change.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from math import log2

from decider.whatif.baselines import PEERS
from decider.whatif.simulator import SimulationResult, replay_lakewright, replay_peer, replay_untouched
from decider.whatif.trace import CommitTrace
from shared.policy.policy import GIB, MIB, Policy
from shared.prices import Usage

Tick = Callable[[str], None]
"""Receives what is replayed next: progress for people."""

TARGETS_BYTES = (32 * MIB, 64 * MIB, 128 * MIB, 256 * MIB, 512 * MIB, GIB)
"""Targets that are tried: what engines split and read well."""

FAN_INS = (4, 8, 16)
TOLERANCES = (Fraction(5, 100), Fraction(15, 100), Fraction(30, 100))
MIN_INPUTS = (4, 8, 16)

WORTH_CHANGING = 0.05
"""Share of the cost that a change of policy has to save before it is recommended: below that it is noise."""

MIN_HOURS = 24.0
"""Shortest history that a recommendation can rest on: what a table does in an hour, it may not do at night."""

MS_PER_HOUR = 3_600_000


@dataclass(frozen=True, slots=True)
class CostModel:
    """Costs in core-seconds: assumptions that a user can replace by measured ones.

    write_s_per_gib: rewriting 1 GiB; a core decodes and encodes about 50 MB/s of Parquet. open_s: what one more file
    costs a query: footer, task, request. queries_per_hour: queries an hour that read the whole table. tail_hours: how
    long the last files continue to be read; without it, a short history would have no readers.
    """

    write_s_per_gib: float = 20.0
    open_s: float = 0.05
    queries_per_hour: float = 10.0
    tail_hours: float = 24.0

    def cost_s(self, done: SimulationResult) -> float:
        """Return what a replay cost: bytes rewritten x write price + files over time x read price."""
        return self.write_s(done) + self.read_s(done)

    def write_s(self, done: SimulationResult) -> float:
        """Return the core-seconds of rewriting."""
        return done.bytes_rewritten / GIB * self.write_s_per_gib

    def read_s(self, done: SimulationResult) -> float:
        """Return the core-seconds that readers spend on opening files."""
        return done.all_file_ms / MS_PER_HOUR * self.queries_per_hour * self.open_s

    def writing(self, done: SimulationResult) -> Usage:
        """Return what rewriting used; each job writes one file and its commit at least."""
        rewritten = done.bytes_rewritten
        return Usage(round(self.write_s(done) * 1000), rewritten, rewritten, done.files_replaced, 2 * done.jobs)

    def reading(self, done: SimulationResult) -> Usage:
        """Return what opening files used: a request for each file that a query opens."""
        opens = round(done.all_file_ms / MS_PER_HOUR * self.queries_per_hour)
        return Usage(core_ms=round(self.read_s(done) * 1000), reads=opens)

    def candidate(self, policy: Policy, done: SimulationResult) -> "Candidate":
        """Return a policy with its replay and what that cost."""
        return Candidate(policy, done, self.write_s(done), self.read_s(done))

    @property
    def tail_ms(self) -> int:
        """How long replays go on after the last commit."""
        return round(self.tail_hours * MS_PER_HOUR)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A policy that was replayed, and what it cost in core-seconds; a table left alone has one that is not enabled."""

    policy: Policy
    replayed: SimulationResult
    write_cost_s: float
    read_cost_s: float

    @property
    def cost_s(self) -> float:
        """Total cost in core-seconds."""
        return self.write_cost_s + self.read_cost_s


@dataclass(frozen=True, slots=True)
class Comparison:
    """The same history left alone, under our rule, and under others'."""

    nothing: SimulationResult
    ours: SimulationResult
    peers: tuple[SimulationResult, ...]


@dataclass(frozen=True, slots=True)
class Recommendation:
    """The recommended policy; `curve` has all targets, `tried` every policy that rewrites; `is_change`: it differs."""

    best: Candidate
    current: Candidate
    nothing_cost_s: float
    curve: tuple[Candidate, ...]
    tried: tuple[Candidate, ...]
    is_change: bool
    message: str

    @property
    def properties(self) -> dict[str, str]:
        """The table properties to set, none where nothing is to be changed."""
        return _properties(self.best.policy, self.current.policy)


def compare(history: CommitTrace, policy: Policy, prices: CostModel, tick: Tick = lambda _: None) -> Comparison:
    """Replay a history without rewrites, under a policy of ours, switched on if it is not, and under others' rules."""
    tick("left alone")
    nothing = replay_untouched(history, policy, tail_ms=prices.tail_ms)
    tick("Lakewright")
    ours = replay_lakewright(history, replace(policy, enabled=True), tail_ms=prices.tail_ms)
    peers = []
    for rule in PEERS:
        tick(rule.title)
        peers.append(replay_peer(history, policy, rule, tail_ms=prices.tail_ms))
    return Comparison(nothing, ours, tuple(peers))


STEPS_OF_COMPARISON = 2 + len(PEERS)
ROUNDS = 2
"""Rounds of a recommendation: the second tries each value again beside the best ones of the first."""

STEPS_OF_RECOMMENDATION = 1 + ROUNDS * (1 + len(TARGETS_BYTES) + len(FAN_INS) + len(TOLERANCES) + len(MIN_INPUTS))
"""Replays of a recommendation at most; a progress bar is as long as that."""


def recommend(
    history: CommitTrace, policy: Policy, prices: CostModel, nothing: SimulationResult, tick: Tick = lambda _: None
) -> Recommendation:
    """Find the target of least cost, then fan-in, tolerance and fewest inputs: one after the other, in two rounds.

    They depend on each other a little: the target decides how far bytes travel, the fan-in how often, the tolerance
    what is left alone, the fewest inputs how soon.
    """
    tried: dict[tuple[int, int, Fraction, int], Candidate] = {}

    def option(candidate: Policy) -> Candidate:
        key = (candidate.target_bytes, candidate.fan_in, candidate.tolerance, candidate.min_input_files)
        if key not in tried:
            tick(f"target {size_text(key[0])}, fan-in {key[1]}, tolerance {float(key[2]):g}, {key[3]} inputs")
            done = replay_lakewright(history, candidate, tail_ms=prices.tail_ms)
            tried[key] = prices.candidate(candidate, done)
        return tried[key]

    left_alone = prices.candidate(replace(policy, enabled=False), nothing)
    on = replace(policy, enabled=True)
    current = option(on) if policy.enabled else left_alone
    best, curve = option(on), tuple[Candidate, ...]()
    for _ in range(ROUNDS):
        for candidates in _ways(policy):
            options = tuple(option(candidate) for candidate in candidates(best.policy))
            curve = curve or options
            best = min(options, key=lambda one: (one.cost_s, _distance(one.policy, policy)))
    # Where rewriting saves nothing, rewriting nothing is the plainer way.
    chosen = best if best.cost_s < left_alone.cost_s else left_alone
    is_change = chosen.cost_s < (1 - WORTH_CHANGING) * current.cost_s
    chosen = chosen if is_change else current
    if not any(one.replayed.jobs for one in tried.values()):
        message = "Nothing to change: no policy that was tried would have rewritten anything in this history."
    elif not is_change:
        message = _keep(current, left_alone)
    elif chosen is left_alone:
        message = _leave_alone(best, left_alone)
    else:
        message = _change(chosen, current, left_alone, prices) + _ties(chosen, tried.values())
    return Recommendation(chosen, current, left_alone.cost_s, curve, tuple(tried.values()), is_change, message)


def without_ground(found: Recommendation) -> Recommendation:
    """Return a recommendation that changes nothing, as the history is shorter than `MIN_HOURS`."""
    message = f"Keep the policy for now: the history is shorter than {MIN_HOURS:g} hours, too short for a change."
    return replace(found, best=found.current, is_change=False, message=message)


def _ways(policy: Policy) -> tuple[Callable[[Policy], list[Policy]], ...]:
    """Return functions from a policy to all that differ from it in one value; `policy` is the one in effect."""
    # One that is chosen for the table is not advised against.
    targets = sorted({*(() if policy.fits_target else TARGETS_BYTES), policy.target_bytes})
    fan_ins = sorted({policy.fan_in, *(one for one in FAN_INS if policy.full_file_threshold * one > 1)})
    return (
        lambda best: [replace(best, target_bytes=target) for target in targets],
        # A fan-in that is set fixes the levels; the one in effect is replayed with the levels as they are.
        lambda best: [
            replace(best, fan_in=fan_in, fits_levels=policy.fits_levels and fan_in == policy.fan_in)
            for fan_in in fan_ins
        ],
        lambda best: [replace(best, tolerance=share) for share in sorted({*TOLERANCES, policy.tolerance})],
        lambda best: [
            replace(best, min_input_files=inputs) for inputs in sorted({*MIN_INPUTS, policy.min_input_files})
        ],
    )


def _distance(one: Policy, present: Policy) -> tuple[float, ...]:
    """Return how far a policy is from the present one, the target first: a change that changes nothing is none."""
    return (
        abs(log2(one.target_bytes / present.target_bytes)),
        abs(one.fan_in - present.fan_in),
        abs(float(one.tolerance - present.tolerance)),
        abs(one.min_input_files - present.min_input_files),
    )


def _keep(current: Candidate, left_alone: Candidate) -> str:
    if not current.policy.enabled:
        return f"Leave this table alone, as it is: nothing that was tried is {WORTH_CHANGING:.0%} cheaper."
    gain = _gain(current, left_alone) or "no compaction at all would cost about as much"
    return f"Keep the policy: nothing that was tried is {WORTH_CHANGING:.0%} cheaper, and {gain}."


def _leave_alone(best: Candidate, left_alone: Candidate) -> str:
    return (
        f"Leave this table alone: as they are, its files cost readers {_number(left_alone.cost_s)} core-seconds, and "
        f"no policy that was tried costs less than {_number(best.cost_s)}, rewriting included. "
        "Set lakewright.enabled=false, and check again when the table is written differently."
    )


def _change(best: Candidate, current: Candidate, left_alone: Candidate, prices: CostModel) -> str:
    settings = ", ".join(f"{name}={value}" for name, value in _properties(best.policy, current.policy).items())
    files, files_then = (_number(one.replayed.mean_files) for one in (current, best))
    rewritten, rewritten_then = (size_text(one.replayed.bytes_rewritten) for one in (current, best))
    fewer = files != files_then and best.replayed.mean_files < current.replayed.mean_files
    less = rewritten != rewritten_then and best.replayed.bytes_rewritten < current.replayed.bytes_rewritten
    if fewer and less:
        reason = "Fewer files and less rewriting"
    elif fewer:
        reason = "Fewer files" + (" are worth more rewriting" if rewritten != rewritten_then else "")
    else:
        reason = "Less rewriting" + (" is worth more files" if files != files_then else "")
    gain = _gain(best, left_alone)
    return (
        f"Set {settings}. {reason}: {files_then} {_files(files_then)} instead of {files}, on average until "
        f"{prices.tail_hours:g} h after the last commit, and {rewritten_then} rewritten instead of {rewritten}. "
        f"At {prices.queries_per_hour:g} queries an hour that costs {1 - best.cost_s / current.cost_s:.0%} less"
        f"{'; ' + gain if gain and current.policy.enabled else ''}."
    )


def _ties(best: Candidate, tried: Iterable[Candidate]) -> str:
    """Name the other targets that cost as much as the best one, all else being equal."""
    policy = best.policy
    others = [
        size_text(one.policy.target_bytes)
        for one in tried
        if one is not best
        and one.cost_s == best.cost_s
        and replace(one.policy, target_bytes=policy.target_bytes) == policy
    ]
    return f" A target of {' or '.join(others)} costs the same as {size_text(policy.target_bytes)}." if others else ""


def _gain(option: Candidate, left_alone: Candidate) -> str:
    """Return what an option saves against a table left alone; nothing where that is less than half a percent."""
    saved = 1 - option.cost_s / left_alone.cost_s if left_alone.cost_s else 0.0
    if saved < 0.005:  # noqa: PLR2004 - from there on it rounds to 1%
        return ""
    # 100% would be a promise that cannot be kept.
    share = f"{saved:.0%}" if saved < 0.99 else "over 99%"  # noqa: PLR2004 - from there on it would round to 100
    return f"against no compaction it saves {share} of what rewriting and reading cost together"


def _properties(best: Policy, current: Policy) -> dict[str, str]:
    found = {}
    if best.enabled != current.enabled:
        found["lakewright.enabled"] = "true" if best.enabled else "false"
    if best.target_bytes != current.target_bytes:
        found["lakewright.target-file-size"] = size_text(best.target_bytes).replace(" ", "")
    if best.fan_in != current.fan_in:
        found["lakewright.fan-in"] = str(best.fan_in)
    if best.tolerance != current.tolerance:
        found["lakewright.tolerance"] = f"{float(best.tolerance):g}"
    if best.min_input_files != current.min_input_files:
        found["lakewright.min-input-files"] = str(best.min_input_files)
    return found


def _number(value: float) -> str:
    """Format a number with three digits at least, so that a change of 5% is visible."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"  # noqa: PLR2004 - three digits before the point


def _files(number: str) -> str:
    return "file" if number == "1" else "files"


def size_text(count_bytes: int) -> str:
    """Return a size for people, in binary units."""
    for unit, name in ((GIB, "GiB"), (MIB, "MiB"), (1024, "KiB")):
        if count_bytes >= unit:
            return f"{_number(count_bytes / unit)} {name}"
    return f"{count_bytes} B"
