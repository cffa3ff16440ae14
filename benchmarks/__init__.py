"""Performance measurements on generated data, each against a straightforward baseline in the same run."""
