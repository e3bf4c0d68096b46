"""An examination for any prioritised replay buffer."""
