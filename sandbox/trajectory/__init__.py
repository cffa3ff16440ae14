"""What an agent and language models said to each other, read from the journals of a run's gateway."""
