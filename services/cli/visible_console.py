"""Consoles of Rich for people: nothing that is printed has a control character but those that Rich itself makes."""

from collections.abc import Iterable

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from services.visible_text import visible


class VisibleConsole(Console):
    """Escapes what a text brings along; line breaks are the layout's by then."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Yield the segments of anything that is printed, made visible."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(_visible(segment.text), segment.style)


def _visible(text: str) -> str:
    return "\n".join(map(visible, text.split("\n")))
