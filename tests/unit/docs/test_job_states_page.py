"""docs/queue.md shows the table of job states and its diagram as the code has them."""

from tests.tools.job_states_page import BEGIN, END, PAGE, rendered


def test_the_page_shows_the_table_and_the_diagram_of_the_code() -> None:
    text = PAGE.read_text(encoding="utf-8")
    shown = text[text.index(BEGIN) : text.index(END) + len(END)]
    assert shown == rendered(), "run python -m tests.tools.job_states_page"
