"""Where agents run: agent definitions, the interface of a backend, and the process backend.

Import from the modules (``sandbox.agent``, ``sandbox.backend``, ``sandbox.process.backend``); this file stays empty so
that importing the package costs nothing.
"""
