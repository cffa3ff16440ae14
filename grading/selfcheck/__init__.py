"""Self-tests of competitions: those of the catalog, and a user's own."""
