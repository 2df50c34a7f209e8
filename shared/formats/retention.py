"""How long a vacuum keeps removed files: the longest of all that ask for it, unless a person forces less."""

from collections.abc import Callable, Mapping

from shared.errors import InvalidInput
from shared.jobs.options import VacuumOptions
from shared.policy.policy import Policy
from shared.policy.properties import names_of, read_properties

_RETENTIONS = names_of("retain_s", "min_retain_s", "reclaim_after_s")
"""Every property that sets a retention."""


def retention_of_run_ms(
    policy: Policy, options: VacuumOptions, configuration: Mapping[str, str], own_s: Callable[[Mapping[str, str]], int]
) -> int:
    """Return the retention of a vacuum in milliseconds.

    It is the longest of those requested, set in the policy, and set on the table now, whose properties may be newer;
    only a forced vacuum may go below it. `own_s`: the retention of a table by its properties, in seconds; what it
    raises is raised, and nothing is deleted then.
    """
    if options.force and options.retain_s is not None:
        return options.retain_s * 1000
    return max(options.retain_s or 0, policy.retention_s, own_s(configuration)) * 1000


def set_retention_s(configuration: Mapping[str, str]) -> int:
    """Return the longest retention that Lakewright's properties of a table set, 0 if none does.

    Raises InvalidInput for one that cannot be read.
    """
    own = read_properties(configuration)
    for issue in own.issues:
        name = issue.property
        if name in _RETENTIONS:
            raise InvalidInput(f"{name} = {issue.value!r} cannot be read: {issue.reason}", field=name)
    return max(own.values.get(name) or 0 for name in ("retain_s", "min_retain_s"))


def reclaims(configuration: Mapping[str, str]) -> bool:
    """Return whether a table's own properties say when files and log are reclaimed, whatever its format's default."""
    return read_properties(configuration).values.get("reclaim_after_s") is not None
