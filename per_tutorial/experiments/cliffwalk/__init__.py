"""The Blind Cliffwalk: the environment, its learners, the measurements of the paper's figures."""
