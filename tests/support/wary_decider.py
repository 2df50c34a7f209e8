"""A decider that checks before each read whether a table is still the one that it knows, not once in a minute.

So tests that roll tables back need not wait for that minute.
"""

import os
import sys

from decider.tracking import table_context
from services.decider.__main__ import main

if __name__ == "__main__":
    table_context.TRUSTED_MS = 0
    sys.exit(main(os.environ))
