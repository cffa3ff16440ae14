BOX = ["x_min", "y_min", "x_max", "y_max"]
