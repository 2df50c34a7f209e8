"""Which policy is in force for a table, and where each value came from.

What is said closer to the table wins: its registration over its properties, these over its tenant's defaults, these
over the service's. A table whose properties hold anything unusable keeps the last good ones as a whole: half of a
change is nobody's intention. What is wrong is kept beside it, to be shown.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum

from shared.errors import InvalidInput
from shared.policy import Issue, Layer, Policy, apply
from shared.properties import read_properties
from shared.table import TableId, TableRef

LastGood = Mapping[str, str]
"""The newest configuration that could be used as a whole, as property names and values."""


class Source(StrEnum):
    """Who said a value, from the strongest to the weakest."""

    REQUEST = "request"
    TABLE = "table"
    TENANT = "tenant"
    SERVICE = "service"
    DEFAULT = "default"


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a value came from; `name` is the property that said it, empty for what nobody said."""

    source: Source
    name: str = ""


@dataclass(frozen=True, slots=True)
class Effective:
    """The policy in force; `origins` maps each field to its origin, `notes` say what a value alone does not."""

    policy: Policy
    origins: Mapping[str, Origin]
    issues: tuple[Issue, ...]
    last_good: LastGood
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Defaults:
    """What holds for tables that say nothing: the service's policy, and the properties that it gives each tenant.

    `group` is the queue that this decider fills; empty if it does not matter.
    """

    service: Policy = field(default_factory=Policy)
    tenants: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    group: str = "default"

    def __post_init__(self) -> None:
        for tenant, said in self.tenants.items():
            layer, policy, issues = _try(self.service, (Source.TENANT, said))
            if policy is None or layer[0][1].issues:
                why = "; ".join(f"{issue.property}={issue.value}: {issue.reason}" for issue in issues)
                raise InvalidInput(f"the defaults of tenant {tenant!r} cannot be used: {why}", field="tenants")

    def effective(self, table: TableRef, configuration: Mapping[str, str], last_good: LastGood) -> Effective:
        """Resolve a table's configuration; on any issue the last good one stays in force and the issues are told."""
        tenant = (Source.TENANT, self.tenants.get(table.tenant, {}))
        request = (Source.REQUEST, table.properties)
        _, _, issues = _try(self.service, tenant, (Source.TABLE, configuration), request)
        used: LastGood
        for used in (configuration, last_good, {}):
            layers, policy, _ = _try(self.service, tenant, (Source.TABLE, used), request)
            if policy is not None:
                return self._served(Effective(policy, _origins(self.service, layers), issues, dict(used)))
        # Only what was said at registration can contradict the defaults by itself, once these have changed.
        layers, policy, _ = _try(self.service, tenant)
        return self._served(Effective(policy or self.service, _origins(self.service, layers), issues, {}))

    def encode(self) -> str:
        """Write the defaults, but for the group, as JSON text."""
        tenants = {name: dict(sorted(said.items())) for name, said in sorted(self.tenants.items())}
        return json.dumps({"policy": self.service.encode(), "tenants": tenants}, sort_keys=True)

    def decode(self, text: str) -> "Defaults":
        """Return these defaults with what `encode` wrote. Raises InvalidInput where this release cannot use it."""
        try:
            said = json.loads(text)
            return replace(self, service=Policy.decode(said["policy"]), tenants=said["tenants"])
        except (ValueError, KeyError, TypeError) as problem:
            raise InvalidInput(f"the defaults that another decider has set cannot be used: {problem}") from problem

    @property
    def version(self) -> str:
        """Short digest of the defaults."""
        return hashlib.blake2b(self.encode().encode(), digest_size=4).hexdigest()

    def _served(self, found: Effective) -> Effective:
        """Switch a table off that belongs to another group."""
        if not self.group or found.policy.group in (None, self.group):
            return found
        note = f"the table belongs to the group {found.policy.group!r}; this decider fills the queue {self.group!r}"
        off = {"enabled": found.origins["group"]}
        return replace(
            found,
            policy=replace(found.policy, enabled=False),
            origins={**found.origins, **off},
            notes=(*found.notes, note),
        )


def effective(default: Policy, configuration: Mapping[str, str], last_good: LastGood) -> Effective:
    """Resolve the configuration of a table that is not registered, over a policy that stands for all defaults."""
    nobody = TableRef(TableId(""), "", "")
    return Defaults(default, group="").effective(nobody, configuration, last_good)


_Said = tuple[Source, Mapping[str, str]]
_Read = tuple[Source, Layer]


def _try(service: Policy, *said: _Said) -> tuple[Sequence[_Read], Policy | None, tuple[Issue, ...]]:
    """Lay over the service's policy what was said, the strongest last; no policy comes of it if anything holds it."""
    layers = [(source, read_properties(one)) for source, one in said]
    issues = tuple(issue for _, layer in layers for issue in layer.issues)
    if any(issue.holds for issue in issues):
        return layers, None, issues
    try:
        return layers, apply(service, *(layer for _, layer in layers)), issues
    except InvalidInput as problem:
        named = ", ".join(sorted({name for _, layer in layers for name in layer.named.values()}))
        return layers, None, (*issues, Issue(named, problem.field, str(problem)))


def _origins(service: Policy, layers: Sequence[_Read]) -> dict[str, Origin]:
    builtin = Policy()
    origins: dict[str, Origin] = {}
    for one in fields(Policy):
        is_set = getattr(service, one.name) != getattr(builtin, one.name)
        origins[one.name] = Origin(Source.SERVICE if is_set else Source.DEFAULT)
        for source, layer in layers:
            if one.name in layer.named:
                origins[one.name] = Origin(source, layer.named[one.name])
    return origins
