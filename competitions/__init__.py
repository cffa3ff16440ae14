"""What the benchmark is: competitions, their facts, how each is prepared and graded. Pure domain code."""
