"""How the pipeline runs unattended: servers, images, schedules."""
