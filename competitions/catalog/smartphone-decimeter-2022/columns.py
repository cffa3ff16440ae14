EPOCH = ["tripId", "UnixTimeMillis"]
POSITION = ["LatitudeDegrees", "LongitudeDegrees"]
