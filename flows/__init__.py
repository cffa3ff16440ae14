"""The steps chained: Prefect flows and the command line."""
