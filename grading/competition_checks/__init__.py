"""Checks that every competition must pass, both those in the catalog and those added by users."""
