EMPTY = "-"  # how a mask without any pixel is written
