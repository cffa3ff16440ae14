"""What a host has for agents, slots and GPUs, and which run gets them."""
