"""The domain of the benchmark: competitions, their facts, and how each is prepared and graded."""

import common  # noqa: F401  # before NumPy is imported
