"""The validation service: it says whether a submission is valid, and with a scorer, how good predictions are."""
