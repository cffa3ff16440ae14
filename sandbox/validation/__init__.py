"""The validation service: it says whether a submission is valid, or why not, and nothing else."""
