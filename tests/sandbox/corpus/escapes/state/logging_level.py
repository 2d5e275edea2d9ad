# effect: state
import logging


def attempt(probe):
    logging.disable(99)


def check(probe):
    return "escaped" if logging.root.manager.disable == 99 else "clean"
