"""Which table formats are served beside Delta, and the catalogs that know their tables; decider and actor need both."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class FormatOptions:
    """Options of each catalog by its name; `iceberg_folders`: Iceberg tables without a catalog are served, too."""

    catalogs: Mapping[str, Mapping[str, str]] = field(default_factory=dict, repr=False, hash=False)
    iceberg_folders: bool = False

    @property
    def has_iceberg(self) -> bool:
        """Whether there can be any Iceberg tables."""
        return bool(self.catalogs) or self.iceberg_folders
