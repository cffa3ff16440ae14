"""What grading tells an agent."""

from __future__ import annotations


class InvalidSubmission(Exception):
    """The submission cannot be graded.

    The message is shown to the agent: one line that says what to mend and reveals nothing about the answers.
    """
