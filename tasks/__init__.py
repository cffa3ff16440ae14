"""One pipeline step a file: thin Prefect tasks that take and return small values, never data."""
