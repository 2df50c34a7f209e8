"""The policy in effect for a table, and the source of each value.

Precedence: the registration of a table over its properties, these over its tenant's defaults, these over its group's,
these over the service's.
A table with an invalid property keeps its last valid properties as a whole, because half of a change is never intended.
The errors are kept beside it, to be shown.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum

from decider.state.format_limits import limit, limited_to
from shared.errors import InvalidInput
from shared.formats.registry import support_of
from shared.jobs.payload import CLUSTER, COMPACT, INDEX
from shared.policy.names import MANUAL, QBEAST_SWITCH
from shared.policy.policy import MIB, ClusterMode, Policy, PolicyLayer, PropertyIssue, apply
from shared.policy.properties import read_properties
from shared.policy.refused_properties import INDEX_PROPERTIES
from shared.refusals import Refusal
from shared.table import TableId, TableRef

LastGood = Mapping[str, str]
"""The newest configuration that could be used as a whole, as property names and values."""


@dataclass(frozen=True, slots=True)
class LogStatus:
    """Inputs to a table's policy from its log, besides the current properties.

    `refusal` is why the table must not be rewritten; `is_stopped_by_qbeast`: Qbeast's switch was unset. `format`: name
    of the table's format; empty: not known. `typical_file_bytes`: size of the files that its commits append, to which
    the levels are fitted; 0: they are not. `target_bytes`: target that was chosen for it; 0: none was.
    """

    refusal: Refusal | None = None
    is_stopped_by_qbeast: bool = False
    format: str = ""
    typical_file_bytes: int = 0
    target_bytes: int = 0


class PolicySource(StrEnum):
    """Source of a value, from the highest to the lowest precedence."""

    REQUEST = "request"
    TABLE = "table"
    TENANT = "tenant"
    GROUP = "group"
    SERVICE = "service"
    DEFAULT = "default"


@dataclass(frozen=True, slots=True)
class PolicyOrigin:
    """Source of a value; `name` is the property that set it, empty for a default."""

    source: PolicySource
    name: str = ""


ROW_REMOVAL = frozenset({"primary_key", "sequence_by", "delete_marker", "key_scope", "delete_rows_after"})
"""Fields that decide which rows are removed."""

_REMOVES = frozenset({"primary_key", "delete_rows_after"})
"""Fields that switch the removal of rows on."""

OWNERS_ONLY = (
    "it decides which rows are removed, so only the table's owner may set it, as a property of the table itself "
    "(ALTER TABLE ... SET TBLPROPERTIES)"
)


_YIELDS = "yield_to_writers"

OWNERS_YIELD = (
    "each rewrite that is undone is lost, so only the table's owner may set it, as a property of the table itself "
    "(ALTER TABLE ... SET TBLPROPERTIES)"
)


@dataclass(frozen=True, slots=True)
class EffectivePolicy:
    """The policy in effect; `origins` maps each field to its origin, `notes` explain values that need it.

    `refusal` is why the table must not be rewritten, even on request; None if it may be.
    """

    policy: Policy
    origins: Mapping[str, PolicyOrigin]
    issues: tuple[PropertyIssue, ...]
    last_good: LastGood
    notes: tuple[str, ...] = ()
    refusal: Refusal | None = None


@dataclass(frozen=True, slots=True)
class PolicyDefaults:
    """Defaults of tables: the service's policy, and the properties that it gives each tenant and each group.

    `queue` is the queue that this decider fills; empty: any. `groups`: the groups of the queue that it serves, too.
    """

    service: Policy = field(default_factory=Policy)
    tenants: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    queue: str = "default"
    groups: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    # All are derived from the fields above, and needed at every refresh of a table.
    _layers: Mapping[str, "_Read"] = field(init=False, repr=False, compare=False)
    _of_groups: Mapping[str, "_Read"] = field(init=False, repr=False, compare=False)
    _defaults: Mapping[str, PolicyOrigin] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        layers = {tenant: _read(PolicySource.TENANT, layers_read) for tenant, layers_read in self.tenants.items()}
        of_groups = {name: _read(PolicySource.GROUP, properties) for name, properties in self.groups.items()}
        object.__setattr__(self, "_layers", layers)
        object.__setattr__(self, "_of_groups", of_groups)
        object.__setattr__(self, "_defaults", _defaults(self.service))
        for source, found in ((PolicySource.TENANT, layers), (PolicySource.GROUP, of_groups)):
            for name, layer in found.items():
                policy, issues = _laid(self.service, layer)
                if policy is None or issues:
                    why = "; ".join(f"{issue.property}={issue.value}: {issue.reason}" for issue in issues)
                    raise InvalidInput(f"the defaults of {source} {name!r} cannot be used: {why}", field=f"{source}s")

    def resolve(
        self, table: TableRef, configuration: Mapping[str, str], last_good: LastGood, log_status: LogStatus
    ) -> EffectivePolicy:
        """Resolve a table's configuration; on any issue the last good one stays in effect and the issues are returned.

        A table with a refusal is disabled by its policy, so for every decision: nothing overrides that. One whose
        refusal allows some kinds of jobs, and whose owner wants the first of them, gets only those.
        """
        found, refusal = self._resolved(table, configuration, last_good), log_status.refusal
        support = support_of(log_status.format)
        if refusal is not None and CLUSTER in refusal.allows and found.policy.cluster is not ClusterMode.OFF:
            found, support = _clustered(found, refusal.reason), limited_to(support, refusal.allows, "clustered")
            refusal = None
        elif refusal is None and support.names_cluster_columns and found.policy.names_cells:
            kinds = [kind for kind in support.job_kinds if kind != COMPACT]
            found, support = _clustered(found, "lakewright.cluster-by is set"), limited_to(support, kinds, "clustered")
        elif refusal is not None and INDEX in refusal.allows:
            wanted = _switched_by_qbeast(found)
            if wanted.policy.index or MANUAL in configuration:
                found, support = _indexed(wanted, refusal), limited_to(support, refusal.allows, "indexed")
                refusal = None
        policy, notes = limit(found.policy, support, configuration)
        found = _aimed(replace(found, policy=policy, notes=(*found.notes, *notes)), log_status.target_bytes)
        found = _fitted(found, log_status.typical_file_bytes)
        return _refused(_stopped(found) if log_status.is_stopped_by_qbeast else found, refusal)

    def _resolved(self, table: TableRef, configuration: Mapping[str, str], last_good: LastGood) -> EffectivePolicy:
        """Resolve over the service's defaults; they, the tenant and the table say which group's are in between."""
        tenant = self._layers.get(table.tenant, (PolicySource.TENANT, PolicyLayer()))
        found = self._over((tenant,), table, configuration, last_good)
        of_group = self._of_groups.get(found.policy.queue)
        if of_group is not None and of_group[1].values:
            found = self._over((of_group, tenant), table, configuration, last_good)
        return self._served(found)

    def _over(
        self, given: tuple["_Read", ...], table: TableRef, configuration: Mapping[str, str], last_good: LastGood
    ) -> EffectivePolicy:
        asked = _read(PolicySource.TABLE, configuration)
        request = _read(PolicySource.REQUEST, table.properties, asked)
        layers_read = (*given, asked, request)
        policy, issues = _laid(self.service, *layers_read)
        if policy is not None:
            return EffectivePolicy(policy, _origins(self._defaults, layers_read), issues, dict(configuration))
        if last_good:
            good = _read(PolicySource.TABLE, last_good)
            layers_read = (*given, good, _read(PolicySource.REQUEST, table.properties, good))
            policy, _ = _laid(self.service, *layers_read)
            if policy is not None:
                return EffectivePolicy(policy, _origins(self._defaults, layers_read), issues, dict(last_good))
        # Only properties of the registration can contradict the defaults by themselves, once these have changed.
        usable, policy = next(
            (layers, laid)
            for layers in ((*given, request), given, ())
            if (laid := _laid(self.service, *layers)[0]) is not None
        )
        found = EffectivePolicy(policy, _origins(self._defaults, usable), issues, {})
        return _kept_off(found, (*given, asked, request))

    def encode(self) -> str:
        """Write the defaults, except the queue, as JSON text."""
        return self._written(self.service.encode())

    def decode(self, text: str) -> "PolicyDefaults":
        """Return these defaults with what `encode` wrote. Raises InvalidInput where this release cannot use it."""
        try:
            layers_read = json.loads(text)
            policy, groups = Policy.decode(layers_read["policy"]), layers_read.get("groups", self.groups)
            return replace(self, service=policy, tenants=layers_read["tenants"], groups=groups)
        except (ValueError, KeyError, TypeError) as problem:
            raise InvalidInput(f"the defaults that another decider has set cannot be used: {problem}") from problem

    @property
    def version(self) -> str:
        """Short digest of the defaults."""
        return hashlib.blake2b(self._written(self.service.version).encode(), digest_size=4).hexdigest()

    def _written(self, policy: str) -> str:
        layers: dict[str, Mapping[str, Mapping[str, str]]] = {"tenants": self.tenants}
        if self.groups:
            layers["groups"] = self.groups
        return json.dumps({"policy": policy, **layers}, sort_keys=True)

    def serves(self, policy: Policy) -> bool:
        """Return whether a table with this policy belongs to this queue or to a group of it."""
        return not self.queue or policy.queue == self.queue or policy.queue in self.groups

    def group(self, policy: Policy) -> str:
        """Return the group of a table with this policy; empty: it is in the queue itself, or in none that is served."""
        return policy.queue if policy.queue in self.groups and policy.queue != self.queue else ""

    def _served(self, found: EffectivePolicy) -> EffectivePolicy:
        """Disable a table that belongs to another queue."""
        if self.serves(found.policy):
            return found
        note = (
            f"the table belongs to the queue {found.policy.queue!r}, this decider to {self.queue!r}; "
            f"set lakewright.queue={' or '.join(sorted({self.queue, *self.groups}))} to have it optimized here"
        )
        off = {"enabled": found.origins["queue"]}
        return replace(
            found,
            policy=replace(found.policy, enabled=False),
            origins={**found.origins, **off},
            notes=(*found.notes, note),
        )


def resolve_unregistered(
    default: Policy, configuration: Mapping[str, str], last_good: LastGood, table_format: str = ""
) -> EffectivePolicy:
    """Resolve the configuration of a table that is not registered, over a policy that replaces all defaults."""
    unregistered = TableRef(TableId(""), "", "")
    return PolicyDefaults(default, queue="").resolve(
        unregistered, configuration, last_good, LogStatus(format=table_format)
    )


def _aimed(found: EffectivePolicy, target_bytes: int) -> EffectivePolicy:
    """Set the target that was chosen for the table, where its owner leaves it to be chosen."""
    if not target_bytes or not found.policy.fits_target:
        return found
    note = f"the target of {target_bytes / MIB:.3g} MiB is chosen; set target-file-size to a size to fix it"
    return replace(found, policy=replace(found.policy, target_bytes=target_bytes), notes=(*found.notes, note))


def _fitted(found: EffectivePolicy, typical_file_bytes: int) -> EffectivePolicy:
    """Fit the levels to the size of the table's new files, unless its owner has fixed them."""
    if not typical_file_bytes or not found.policy.fits_levels:
        return found
    note = (
        f"the size levels are fitted to new files of {typical_file_bytes / MIB:.3g} MiB; set fan-in to keep them at "
        "target / fan-in^n"
    )
    return replace(found, policy=found.policy.fitted_to(typical_file_bytes), notes=(*found.notes, note))


def _stopped(found: EffectivePolicy) -> EffectivePolicy:
    """Disable a table whose owner unset Qbeast's switch, unless its registration enables it."""
    if not found.policy.enabled or found.origins["enabled"].source is PolicySource.REQUEST:
        return found
    return replace(
        found,
        policy=replace(found.policy, enabled=False),
        origins={**found.origins, "enabled": PolicyOrigin(PolicySource.TABLE, QBEAST_SWITCH)},
        notes=(*found.notes, f"{QBEAST_SWITCH} was unset, which stops the table as in Qbeast; set lakewright.enabled"),
    )


def _clustered(found: EffectivePolicy, why: str) -> EffectivePolicy:
    in_cells = found.policy.cluster is ClusterMode.CELLS
    how = "rewrites keep it in cells" if in_cells else "Delta's own OPTIMIZE clusters it"
    note = f"{why}, so nothing else compacts or sorts it: {how}"
    return replace(found, policy=found.policy.with_traits(is_clustered=True), notes=(*found.notes, note))


def _switched_by_qbeast(found: EffectivePolicy) -> EffectivePolicy:
    """Switch the index on where Qbeast's own switch enabled the table: on such a table it means nothing else."""
    origin = found.origins["enabled"]
    if not found.policy.enabled or origin.name != QBEAST_SWITCH:
        return found
    return replace(found, policy=replace(found.policy, index=True), origins={**found.origins, "index": origin})


def _indexed(found: EffectivePolicy, refusal: Refusal) -> EffectivePolicy:
    note = f"{refusal.reason}, so its files are merged by its index alone"
    # Properties about the index are read with the index itself.
    issues = tuple(issue for issue in found.issues if issue.is_blocking or issue.property not in INDEX_PROPERTIES)
    return replace(found, policy=found.policy.with_traits(is_indexed=True), notes=(*found.notes, note), issues=issues)


def _refused(found: EffectivePolicy, refusal: Refusal | None) -> EffectivePolicy:
    if refusal is None:
        return found
    return replace(
        found,
        policy=replace(found.policy, enabled=False).with_traits(refused=refusal.key),
        origins={**found.origins, "enabled": PolicyOrigin(PolicySource.TABLE, refusal.subject)},
        notes=(*found.notes, f"the table is refused: {refusal.message}"),
        refusal=refusal,
    )


_Read = tuple[PolicySource, PolicyLayer]


_NOTHING_READ: _Read = (PolicySource.TABLE, PolicyLayer())


def _read(source: PolicySource, layers_read: Mapping[str, str], own: _Read = _NOTHING_READ) -> _Read:
    """Read the properties of a source; of others than the owner without what only the owner may set.

    own: the table's own ones. Its filter excludes partitions from the removal of rows, too, so it stays where rows are
    removed.
    """
    layer = read_properties(layers_read)
    owners = ROW_REMOVAL | {_YIELDS} | ({"filter"} & own[1].values.keys() if _REMOVES & own[1].values.keys() else set())
    if source is PolicySource.TABLE or not owners & layer.values.keys():
        return source, layer
    names = sorted(layer.property_names[one] for one in owners & layer.values.keys())
    why = {layer.property_names[_YIELDS]: OWNERS_YIELD} if _YIELDS in layer.values else {}
    issues = [PropertyIssue(name, layers_read[name], why.get(name, OWNERS_ONLY), is_blocking=False) for name in names]
    values = {one: value for one, value in layer.values.items() if one not in owners}
    named = {one: name for one, name in layer.property_names.items() if one not in owners}
    return source, PolicyLayer(values, named, (*layer.issues, *issues))


def _laid(service: Policy, *layers: _Read) -> tuple[Policy | None, tuple[PropertyIssue, ...]]:
    """Apply the layers over the service's policy, the highest precedence last; no policy if an issue blocks it."""
    issues = tuple(issue for _, layer in layers for issue in layer.issues)
    if any(issue.is_blocking for issue in issues):
        return None, issues
    try:
        return apply(service, *(layer for _, layer in layers)), issues
    except InvalidInput as problem:
        named = ", ".join(sorted({name for _, layer in layers for name in layer.property_names.values()}))
        return None, (*issues, PropertyIssue(named, problem.field, str(problem)))


def _kept_off(found: EffectivePolicy, layers_read: Sequence[_Read]) -> EffectivePolicy:
    """Keep a table disabled whose owner disabled it beside an invalid property: the safe side of half a change."""
    switches = [(source, layer) for source, layer in layers_read if "enabled" in layer.values]
    if not switches or not found.policy.enabled:
        return found
    source, layer = switches[-1]
    if layer.values["enabled"]:
        return found
    name = layer.property_names["enabled"]
    return replace(
        found,
        policy=replace(found.policy, enabled=False),
        origins={**found.origins, "enabled": PolicyOrigin(source, name)},
        notes=(*found.notes, f"{name} is applied although another property is invalid; fix that one first"),
    )


def _defaults(service: Policy) -> dict[str, PolicyOrigin]:
    """Return the source of each value that no property of the table sets."""
    default, service_set = PolicyOrigin(PolicySource.DEFAULT), PolicyOrigin(PolicySource.SERVICE)
    builtin = Policy()
    names = (one.name for one in fields(Policy))
    return {name: default if getattr(service, name) == getattr(builtin, name) else service_set for name in names}


def _origins(defaults_of_fields: Mapping[str, PolicyOrigin], layers: Sequence[_Read]) -> dict[str, PolicyOrigin]:
    origins = dict(defaults_of_fields)
    for source, layer in layers:
        origins |= {sets: PolicyOrigin(source, name) for sets, name in layer.property_names.items()}
    return origins
