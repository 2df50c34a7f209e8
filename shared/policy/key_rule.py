"""Newest row per key: which columns identify a row, and by which the newest one is found, by a table's properties."""

from dataclasses import dataclass

from shared.policy.policy import KeyScope, Policy
from shared.policy.row_order import parse_sort_columns


@dataclass(frozen=True, slots=True)
class KeyRule:
    """Columns of the key, columns by which rows of one key are ordered, and the column that marks deletions, if any.

    scope: where keys are unique. Names are those that users know.
    """

    keys: tuple[str, ...]
    sequence: tuple[str, ...]
    delete_marker: str | None = None
    scope: KeyScope = KeyScope.TABLE

    @staticmethod
    def of(policy: Policy) -> "KeyRule | None":
        """Return the rule of a policy, None if it names no key."""
        if policy.primary_key is None or policy.sequence_by is None:
            return None
        marker = None if policy.delete_marker is None else _names(policy.delete_marker)[0]
        return KeyRule(_names(policy.primary_key), _names(policy.sequence_by), marker, policy.key_scope)


def _names(columns: str) -> tuple[str, ...]:
    return tuple(column.name for column in parse_sort_columns(columns))
