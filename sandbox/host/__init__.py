"""The slots and GPUs of a host, and their assignment to runs."""
