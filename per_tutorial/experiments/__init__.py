"""What replay is worth: studies, their runner, estimates, and the Blind Cliffwalk."""
