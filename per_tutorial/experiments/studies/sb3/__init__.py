"""What PER is worth inside Stable-Baselines3's agents: studies of runs that SB3 trains.

They share `study`, `runner`, `results` and the file format with all other studies; a file holds one
run until all are there. `settings` and `training` replace those of our own learner, and
`declared.sb3` says what is compared. Running them needs the extra [sb3]; reading them does not.
"""
