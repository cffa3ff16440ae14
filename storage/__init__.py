"""The store: files below one root URL on any fsspec file system, downloads, prepared datasets, records, tables."""
