"""Metrics: pure functions over arrays, one module a family. They validate nothing about files; see
`competitions.scoring.cells`.
"""
