"""What the backends that isolate agents share: the world inside, the loopback network, the proxy, the system calls."""
