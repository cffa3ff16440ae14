"""Statistics over graded runs: small pure functions, and tables computed with them.

`seeds` has the formulas and `series` the grouping that all tables share. `aggregate`, `attempts`, `over_time`,
`compare` and `usage` each compute one family of tables.
"""
