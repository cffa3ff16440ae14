VERDICTS = ["winner_model_a", "winner_model_b", "winner_tie"]
