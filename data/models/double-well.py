"""An unnormalised log-density on [-2, 2] with two modes, for `thesis-cli posterior`; its slope is at most 48."""


def log_density(x):
    return 4 * x[0] ** 2 - 2 * x[0] ** 4
