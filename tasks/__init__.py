"""One pipeline step in each file: a plain function, and a thin Prefect task around it.

Tasks take and return small values (ids, URLs, hashes, requests), never data. What connects the rooms below, such as
backends made from settings, is in `tasks.wiring`.
"""
