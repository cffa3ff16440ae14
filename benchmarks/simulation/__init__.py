"""Simulating the full benchmark: a discrete-event simulation of the pipeline, its costs, and their calibration."""
