"""Where agents run: agent definitions, the interface of a backend, and the process backend.

Import from the modules (``sandbox.definitions``, ``sandbox.backend``, ``sandbox.process.backend``). This file stays
empty, so that importing the package is cheap.
"""
