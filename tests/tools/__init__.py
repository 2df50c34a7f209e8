"""Commands of `make` that write pages, measure the repository, and list and scan what the images hold."""
