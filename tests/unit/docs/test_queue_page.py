"""docs/queue.md says of each setting what the code does: its rows are compared with the literal table."""

from pathlib import Path

from services.cli.commands.queue_settings import rows
from shared.queue.settings import SETTINGS

PAGE = Path(__file__).resolve().parents[3] / "docs" / "queue.md"


def test_the_page_has_the_row_of_each_setting_and_no_other() -> None:
    answer = [
        {
            "name": name,
            "value": one.default,
            "unit": one.unit.value,
            "default": one.default,
            "description": one.description,
        }
        | {"minimum": one.low, "maximum": one.high}
        for name, one in SETTINGS.items()
    ]
    expected = [
        f"| `{name}` | {default} | {low} | {high} | {unit} | {meaning} |"
        for name, _, unit, default, low, high, meaning in rows({"settings": answer})
    ]
    lines = PAGE.read_text().splitlines()
    first = lines.index("| name | default | from | to | unit | meaning |") + 2
    assert lines[first : lines.index("", first)] == expected
