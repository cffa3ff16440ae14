"""S3 servers for tests: Ceph's radosgw, or moto where that is not installed."""
