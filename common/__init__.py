"""What has no domain: errors, settings, processes, files. It imports nothing else of ours."""
