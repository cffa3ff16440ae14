COMMANDS = ["yes", "no", "up", "down", "left", "right", "on", "off", "stop", "go"]
UNKNOWN, SILENCE = "unknown", "silence"
