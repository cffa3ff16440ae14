"""The store, below one root URL on any fsspec file system: downloads, prepared datasets, records of runs, tables."""
