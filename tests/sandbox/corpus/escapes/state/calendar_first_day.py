# effect: state
import calendar


def attempt(probe):
    calendar.setfirstweekday(3)


def check(probe):
    return "escaped" if calendar.firstweekday() == 3 else "clean"
