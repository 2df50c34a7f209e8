"""What is dropped oldest first is an OrderedDict: a plain dict takes the longer to find its first key the more it lost.

A decider that had applied thirty thousand commits needed three times the CPU for each further one.
"""

import re

from tests.support.stack import ROOT

DROPPED_FIRST = re.compile(r"(?:del self|\.pop\().*next\(iter\(self\.")


def test_no_plain_dict_loses_its_first_key_again_and_again() -> None:
    sources = [path for part in ("actor", "decider", "services", "shared") for path in (ROOT / part).rglob("*.py")]
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in sources
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if DROPPED_FIRST.search(line)
    ]
    assert len(sources) > 300
    assert found == []
