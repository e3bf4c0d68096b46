"""What PER is worth inside Stable-Baselines3's agents: studies of runs that SB3 trains.

They are studies as all others: `study`, `runner` and `results` are the same, and so are the files,
which hold one run each until all are there. `settings` and `training` take the place of our own
learner's, and `declared.sb3` says what is compared. To run them needs the extra [sb3], to read them
does not.
"""
