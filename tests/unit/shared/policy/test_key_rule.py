"""A policy has a rule of keys where it names both halves of one."""

import pytest

from shared.policy.key_rule import KeyRule
from shared.policy.policy import KeyScope, Policy


def test_a_policy_has_a_rule_where_it_names_key_and_sequence() -> None:
    assert KeyRule.of(Policy()) is None
    named = Policy(primary_key="a, `b c`", sequence_by="ts, n", delete_marker="`is gone`", key_scope=KeyScope.PARTITION)
    assert KeyRule.of(named) == KeyRule(("a", "b c"), ("ts", "n"), "is gone", KeyScope.PARTITION)


@pytest.mark.parametrize("half", [{"primary_key": "id"}, {"sequence_by": "ts"}])
def test_a_key_without_a_sequence_is_no_rule_and_neither_is_the_other_half(half: dict[str, str]) -> None:
    policy = Policy(**half)
    assert (KeyRule.of(policy), policy.has_key) == (None, False)
