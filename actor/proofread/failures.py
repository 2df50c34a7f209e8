"""Why files cannot be compared: their columns are unclear, or a reader cannot read them."""


class ColumnsUnclear(Exception):  # noqa: N818 - the name describes the event
    """The format does not say which of a file's columns is which."""


class CannotRead(Exception):  # noqa: N818
    """A reader does not read a file, a type or a value; another one may."""
