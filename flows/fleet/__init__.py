"""Attempts on one machine or on a fleet: a bounded task runner here, a work pool of Prefect, its workers and boards."""
