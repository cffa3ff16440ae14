SCORES = range(1, 7)
