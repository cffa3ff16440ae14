"""The LLM gateway gives agents access to language models with a token of their run, never with an API key."""
