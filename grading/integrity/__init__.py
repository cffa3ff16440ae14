"""Integrity checks: pure functions over texts and records, without network access.

Plagiarism: `tokens`, `winnowing` and `matching`. Rule violations: `detectors` without a language model, `questions`
with one. Contamination: `familiarity`.
"""
