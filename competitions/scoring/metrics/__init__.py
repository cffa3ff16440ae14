"""Metrics: pure functions over arrays, one module per family. `competitions.scoring.cells` checks their input."""
