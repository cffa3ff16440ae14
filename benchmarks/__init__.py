"""Performance measurements on generated data, each against a straightforward baseline in the same run."""

import common  # noqa: F401  # before NumPy is imported
