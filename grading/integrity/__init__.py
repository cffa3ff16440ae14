"""Was a result come by honestly? Pure functions over texts and records; no network, no Prefect.

`ledger` (evidence that nothing was changed afterwards), `tokens`, `winnowing` and `matching` (plagiarism), `detectors`
(rule violations without a language model), `questions` (with one), `familiarity` (contamination).
"""
