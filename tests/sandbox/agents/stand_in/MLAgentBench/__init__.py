"""A stand-in for MLAgentBench: modules and signatures that the agent `mlab` uses, and what they do, in other code."""
