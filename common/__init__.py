"""Utilities without domain knowledge: errors, settings, processes, files. Imports no other package of this project."""

import os

# OpenBLAS, which NumPy and SciPy bring with them, starts a thread for each further core when it is loaded. By default
# these threads poll for work for a tenth of a second before they sleep, in every process that imports one of the two.
os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "20")  # 2 to the power of 20 cycles
