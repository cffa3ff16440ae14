"""Results, trajectories and tasks in the formats of other tools. Nothing here imports those tools."""
