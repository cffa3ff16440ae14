"""Statistics over graded runs: small pure functions, and the tables that are built with them.

`seeds` has the formulas, `series` the grouping that all tables share; `aggregate`, `attempts`, `over_time`, `compare`
and `usage` each make one family of tables.
"""
