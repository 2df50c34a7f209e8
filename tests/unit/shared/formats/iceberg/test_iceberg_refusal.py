"""Tables that a rewrite could harm are refused by name, with what to do instead."""

from collections.abc import Mapping

import pytest

from shared.formats.iceberg.names import GENERATED_BY, UNKNOWN_TRANSFORM, UNKNOWN_TYPE
from shared.formats.iceberg.refusal import refusal
from shared.refusals import RefusalCode
from shared.table import TableMetadata, TableProtocol


@pytest.mark.parametrize("mark", sorted(GENERATED_BY))
def test_metadata_that_another_system_generates_are_refused_by_its_mark_wherever_it_is(mark: str) -> None:
    """Paimon marks the summaries of its snapshots; a release of XTable marks these and not the table."""
    for properties, features in (({mark: "1"}, frozenset[str]()), ({}, frozenset({mark}))):
        found = refusal(TableMetadata("u", (), properties), TableProtocol(2, 2, writer_features=features))
        assert found is not None
        assert found.subject == "generated-metadata"
        assert GENERATED_BY[mark] in found.reason


@pytest.mark.parametrize(
    ("version", "properties", "subject"),
    [
        (4, {}, "format-version"),
        (2, {"encryption.key-id": "k"}, "encryption"),
        (2, {"mixed-format.table-store": "base"}, "mixed-format"),
        (2, {"delta-version": "7", "delta-timestamp": "1"}, "generated-metadata"),
        (2, {"XTABLE_METADATA": "{}"}, "generated-metadata"),
        (2, {"encryption.key-id": ""}, None),
        (1, {}, None),
        (3, {"write.format.default": "orc"}, None),
    ],
)
def test_a_table_is_refused_for_what_no_rewrite_is_known_to_keep(
    version: int, properties: Mapping[str, str], subject: str | None
) -> None:
    found = refusal(TableMetadata("u", (), properties), TableProtocol(version, version))
    assert (None if found is None else found.subject) == subject
    if found is not None:
        assert found.code is (RefusalCode.PROTOCOL if version == 4 else RefusalCode.FEATURE)
        assert found.action


@pytest.mark.parametrize(
    ("features", "subject"),
    [
        ({f"{UNKNOWN_TRANSFORM}days"}, "transform"),
        ({f"{UNKNOWN_TYPE}days"}, "type"),
        ({f"{UNKNOWN_TYPE}days", "a feature before it by name"}, "type"),
    ],
)
def test_what_the_specification_does_not_know_is_refused_by_its_name(features: set[str], subject: str) -> None:
    found = refusal(TableMetadata("u", ()), TableProtocol(2, 2, writer_features=frozenset(features)))
    assert found is not None
    assert (found.code, found.subject) == (RefusalCode.FEATURE, subject)
    assert "'days'" in found.reason
