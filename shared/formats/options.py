"""Table formats that are served beside Delta, and the catalogs that know their tables; decider and actor need both."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from shared.unity.catalog import UnityCatalog
from shared.unity.options import is_unity


@dataclass(frozen=True, slots=True)
class FormatOptions:
    """Options of each catalog by its name; `iceberg_folders`: Iceberg tables without a catalog are served, too.

    unity: the catalogs that are Unity's, ready to be asked.
    """

    catalogs: Mapping[str, Mapping[str, str]] = field(default_factory=dict, repr=False, hash=False)
    iceberg_folders: bool = False
    unity: Mapping[str, UnityCatalog] = field(default_factory=dict, repr=False, hash=False, compare=False)

    @property
    def iceberg_catalogs(self) -> Mapping[str, Mapping[str, str]]:
        """The catalogs of Iceberg tables."""
        return {name: options for name, options in self.catalogs.items() if not is_unity(options)}

    @property
    def has_iceberg(self) -> bool:
        """True if there can be any Iceberg tables."""
        return bool(self.iceberg_catalogs) or self.iceberg_folders
