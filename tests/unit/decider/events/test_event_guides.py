"""The guides say what is so: every source has one, every reason is explained, and what is pasted is understood."""

import ast
import json
import re
from pathlib import Path

import pytest

from decider.api.sns_confirmation import ConfirmationResult
from decider.events.detect import FORMATS, parse_value
from decider.events.table_hint import IgnoredReason

FOLDER = Path(__file__).resolve().parents[4] / "docs" / "events"
PLACES = ("outside_allowed_roots", "table_not_found", "location_unreadable", "unknown_table_limit")
GUIDES = {path.name: path.read_text() for path in FOLDER.glob("*.md")}


@pytest.mark.parametrize("source", [shape.source for shape in FORMATS if shape.source != "lakewright"])
def test_every_source_has_a_guide_that_names_its_address(source: str) -> None:
    assert any(f"/v1/events/{source}" in text for text in GUIDES.values())


def test_the_index_leads_to_every_guide_and_explains_every_reason() -> None:
    index = GUIDES["README.md"]
    assert all(f"]({name})" in index for name in GUIDES if name != "README.md")
    assert all(f"`{reason}`" in index for reason in (*IgnoredReason, *ConfirmationResult, "unknown_table", *PLACES))


def test_links_lead_to_files() -> None:
    links = [
        (name, target) for name, text in GUIDES.items() for target in re.findall(r"\]\((?!https:)([^)#]+)\)", text)
    ]
    assert {name for name, _ in links} >= {"README.md"}
    assert [(name, target) for name, target in links if not (FOLDER / target).exists()] == []


def test_events_in_the_guides_are_understood() -> None:
    bodies = [
        *re.findall(r"-d '(\{.*?\})'", GUIDES["lakewright.md"] + GUIDES["cloudevents.md"]),
        *re.findall(r"```json\n(.*?)```", GUIDES["lakewright.md"], re.DOTALL),
    ]
    assert len(bodies) == 3
    assert all(parse_value(json.loads(body)).hints for body in bodies)


def test_the_callback_of_airflow_is_python() -> None:
    (code,) = re.findall(r"```python\n(.*?)```", GUIDES["airflow.md"], re.DOTALL)
    assert any(isinstance(node, ast.FunctionDef) for node in ast.parse(code).body)


def test_json_in_commands_is_json() -> None:
    found = [text for guide in GUIDES.values() for text in re.findall(r"'(\{\s*\".*?\})'", guide, re.DOTALL)]
    assert len(found) > 6
    for text in found:
        json.loads(text)
