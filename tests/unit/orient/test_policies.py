"""The policy in force: table properties over defaults, and the last good ones while the new ones are unusable."""

from decider.orient.policies import effective
from shared.policy import MIB, Policy

DEFAULT = Policy(target_bytes=64 * MIB)


def test_properties_win_over_the_default_and_say_where_they_came_from() -> None:
    found = effective(DEFAULT, {"lakewright.fan-in": "4"}, {})
    assert (found.policy.fan_in, found.policy.target_bytes) == (4, 64 * MIB)
    assert (found.origins["fan_in"], found.origins["target_bytes"]) == ("lakewright.fan-in", "default")
    assert found.issues == ()


def test_a_bad_value_keeps_the_last_good_configuration_as_a_whole_and_shows_why() -> None:
    good = {"lakewright.fan-in": "4"}
    found = effective(DEFAULT, {"lakewright.fan-in": "16", "lakewright.tolerance": "lots"}, good)
    assert found.policy.fan_in == 4
    assert [issue.property for issue in found.issues] == ["lakewright.tolerance"]
    assert found.last_good == good


def test_without_a_last_good_configuration_the_default_is_in_force() -> None:
    found = effective(DEFAULT, {"lakewright.no-such": "1"}, {})
    assert found.policy == DEFAULT
    assert found.issues


def test_an_unset_property_falls_back_to_the_default() -> None:
    assert effective(DEFAULT, {}, {"lakewright.fan-in": "4"}).policy == DEFAULT
