"""Threads derive and prepare datasets while another one of the process imports a library for the first time."""

from __future__ import annotations

import subprocess
import sys

import pytest

COLD = """
import sys, threading
from storage.datasets.{module} import {function}

importing = threading.Thread(target=__import__, args=("{library}",))
importing.start()
while "{library}" not in sys.modules:
    pass
{function}({arguments})
importing.join()
"""


@pytest.mark.parametrize(
    ("module", "function", "library", "arguments"),
    [("job", "release_memory", "pyarrow", ""), ("workers", "_version", "pandas", "'pandas', 'pandas'")],
)
def test_a_library_that_is_being_imported_is_no_error(module: str, function: str, library: str, arguments: str) -> None:
    code = COLD.format(module=module, function=function, library=library, arguments=arguments)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
