"""Tables that a rewrite could harm are refused by name, with what to do instead."""

from collections.abc import Mapping

import pytest

from shared.formats.iceberg.refusal import refusal
from shared.refusals import RefusalCode
from shared.table import TableMetadata, TableProtocol


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
