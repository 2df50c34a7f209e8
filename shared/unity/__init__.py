"""Unity Catalog's REST contract without I/O: requests as values, answers decoded at once, and what each means.

Decider and actor ask the same catalog by the same rules; who sends the requests is given from outside.
"""
