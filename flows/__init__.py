"""Prefect flows, which chain the tasks, and the command line."""
