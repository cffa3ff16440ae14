"""What people see of a flow: the board in a terminal, and names, artifacts and outcomes in the Prefect UI."""
