"""What PER is worth inside Stable-Baselines3's agents: studies of runs that SB3 trains.

They are studies as all others: `study` and `runner` are the same, and so are the files, which hold
one run each until all are there. `settings` and `training` take the place of our own learner's, and
`declared` says what is compared. To run and to read them:

    python -m per_tutorial study sb3-cartpole        # continues where it was stopped; needs the
    extra [sb3]

    from per_tutorial.experiments.studies.results import load_study, report

    study = load_study("sb3-cartpole")               # without SB3, too
    print(report(study))                             # every arm, then every declared comparison
    grid, scores = study.curve("per")                # (points,) and (points, runs)
    draw_curves(axes, {"PER": (grid, scores)}, colors={"PER": COLORS["per"]})
    pair = study.scores("per"), study.scores("uniform")  # one score a run, paired by their seeds
    draw_estimates(axes, {"PER − uniform": paired_difference(*pair)})
    verdict(*pair)                                   # per_tutorial.experiments.statistics.estimates

The studies are "sb3-cartpole", "sb3-cliffwalk", "sb3-pendulum-sac", "sb3-pendulum-td3" and
"sb3-sparse".
"""
