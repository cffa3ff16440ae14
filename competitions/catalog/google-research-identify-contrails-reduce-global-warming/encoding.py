EMPTY = "-"  # encoding of an empty mask
