"""The validation service tells an agent whether a submission is valid, or why not, and nothing else."""
