"""The LLM gateway: agents reach language models through it, with a token of their run and never with an API key."""
