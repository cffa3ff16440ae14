"""The error for submissions that cannot be graded."""

from __future__ import annotations


class InvalidSubmission(Exception):
    """The submission cannot be graded.

    The message is shown to the agent: one line that says what to fix and reveals nothing about the answers.
    """

    detail: str | None = None
    """What operators alone are shown, such as the traceback of a grader that died of the submission."""
