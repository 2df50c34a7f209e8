"""The folders of unit tests mirror the product's packages, so that the tests of a module are found beside its path."""

from pathlib import Path

UNIT = Path(__file__).parent
ROOT = UNIT.parents[1]
NOT_OF_THE_PRODUCT = {"docs", "tests/mutants", "tests/support", "tests/tools"}
"""What else has unit tests, in a folder of its last name: the pages, the mutants, the tests' support and tools."""


def test_each_folder_of_unit_tests_is_named_like_a_package() -> None:
    folders = {path.parent.relative_to(UNIT) for path in UNIT.rglob("test_*.py")} - {Path()}
    others = {Path(place).name for place in NOT_OF_THE_PRODUCT if (ROOT / place).is_dir()}
    packages = {folder for folder in folders if (ROOT / folder / "__init__.py").is_file()}
    assert {str(folder) for folder in folders - packages} == others


def test_no_two_files_of_unit_tests_have_one_name() -> None:
    names = [path.name for path in UNIT.rglob("test_*.py")]
    assert sorted(names) == sorted(set(names))
