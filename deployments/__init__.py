"""Running the pipeline unattended: servers, images, schedules."""
