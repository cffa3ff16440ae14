CLASSES = ["alpha", "beta", "delta"]
