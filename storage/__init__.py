"""Where bytes live: one root on any fsspec file system, manifests, Parquet tables, and materialising on Dask."""
