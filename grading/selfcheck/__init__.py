"""Checks that every competition must pass, those of the catalog and those that users add."""
