"""One pipeline step in each file: a plain function, and a thin Prefect task around it.

Tasks take and return small values (ids, URLs, hashes, requests), never data. `tasks.wiring` connects the packages
below, for example by making backends from the settings.
"""
