"""Tables with a Qbeast index: files are rewritten by the rules of the index, which are proved on the files."""
