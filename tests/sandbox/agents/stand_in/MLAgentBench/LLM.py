"""The original reads keys from files and needs PyTorch. It must be replaced before it is imported."""

raise ImportError("keys of language models and PyTorch")
