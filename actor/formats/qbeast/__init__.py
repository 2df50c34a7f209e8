"""Tables with a Qbeast index: the library rewrites chosen files, and each of its commits is checked."""
