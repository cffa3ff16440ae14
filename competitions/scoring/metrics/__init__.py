"""Metrics: pure functions over arrays, one module a family. `competitions.scoring.cells` checks what goes into them."""
