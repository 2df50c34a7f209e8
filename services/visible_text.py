"""Words of others are shown with their control characters as escapes: a terminal would obey them.

Names, partition values, comments of commits and errors come from the writers of tables. Printed as they are, they
could move the cursor, recolor or erase what stands there, answer for the person at the keyboard, or begin a line that
looks like one of ours.
"""

import re

_CONTROL = re.compile(
    "[\x00-\x1f\x7f-\x9f"  # C0, DEL and C1, which some terminals read as escape sequences
    "\u2028\u2029"  # other line breaks
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # what turns the direction of the text that follows
    "\ud800-\udfff]"  # halves of surrogate pairs, which no terminal can be sent
)
_SHORT = {"\n": r"\n", "\r": r"\r", "\t": r"\t"}


def visible(text: str) -> str:
    """Return a text in one line, in which every control character is an escape as in Python and JSON."""
    return _CONTROL.sub(lambda found: _SHORT.get(found[0]) or f"\\u{ord(found[0]):04x}", text)


def visible_lines(text: str) -> str:
    """Return a text with its lines, all but the first indented: none of them looks like the start of a message."""
    return "\n  ".join(map(visible, text.split("\n")))


def visible_json(text: str) -> str:
    """Return a JSON text with the control characters that JSON allows in its strings as escapes; it means the same."""
    return _CONTROL.sub(lambda found: found[0] if found[0] in "\n\t\r" else f"\\u{ord(found[0]):04x}", text)
