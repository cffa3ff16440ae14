"""A probe for each known issue that v2 fixes: what an agent gains from it in v1, and no longer in v2."""
