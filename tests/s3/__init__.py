"""S3 servers for tests: moto everywhere, Ceph's radosgw where it is installed."""
