"""Tables with a Qbeast index: what their Delta log says of the index, and which files an optimization takes."""
