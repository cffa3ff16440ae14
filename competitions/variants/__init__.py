"""Small variants of prepared competitions: fewer units of train and of test, chosen by rule from the prepared files.

records     the tables of a dataset, row by row: CSV, JSON, JSON lines, Parquet, also in archives
draw        which units are kept, by hashes and with their classes
links       which rows and files belong to kept units
derive      the declaration of a variant's files, from the prepared dataset of its competition
"""
