"""Health checks for `mlebench doctor`, and the detection and recovery of flow runs whose process has died."""
