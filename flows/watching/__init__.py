"""Showing flows to people: the board in a terminal; names, artifacts and outcomes in the Prefect UI."""
