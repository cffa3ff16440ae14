"""Prepared competitions as environments to train agents in: short episodes with a dense reward.

shell      runs commands in a sandbox, one after the other
sandboxes  starts sandboxes of the backends that runs use, some of them ahead of time
datasets   a prepared competition with its graders, and the rewards they give
actions    what an agent can do, and what it is told
episode    one attempt: actions until it submits or reaches a limit
episodes   episodes at the same time, within the slots of the host
journal    the record of each episode in the store
"""

BACKENDS = ("docker", "process")
"""The backends in whose sandboxes `training.shell` starts a shell."""
