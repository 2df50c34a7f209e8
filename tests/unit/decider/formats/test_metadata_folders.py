"""Folders of metadata lead to the tables that were read with a metadata file there, and their number is bounded."""

from decider.formats.metadata_folders import MetadataFolders


def test_a_folder_leads_to_each_table_that_has_its_metadata_there() -> None:
    folders = MetadataFolders()
    for _ in range(2):
        folders.note("catalog://a/db/t", "s3a://lake/db/t/metadata/00001-x.metadata.json")
    folders.note("catalog://b/db/t", "s3://lake/db/t/metadata/00002-y.metadata.json")
    folders.note("catalog://a/db/none", "")
    assert folders.tables("s3://lake/db/t/metadata") == ("catalog://a/db/t", "catalog://b/db/t")
    assert folders.tables("s3://lake/db/t") == ()


def test_the_folder_that_was_noted_first_is_forgotten_beyond_the_bound() -> None:
    folders = MetadataFolders(most=2)
    for name in "abc":
        folders.note(f"catalog://a/db/{name}", f"s3://lake/{name}/1.metadata.json")
    assert [len(folders.tables(f"s3://lake/{name}")) for name in "abc"] == [0, 1, 1]
