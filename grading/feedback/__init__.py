"""What agents are told of their scores, and what is kept of it."""
