CLASSES = ["healthy", "multiple_diseases", "rust", "scab"]
