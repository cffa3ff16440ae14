"""The messages between an agent and language models, read from the journals of a run's gateway."""
