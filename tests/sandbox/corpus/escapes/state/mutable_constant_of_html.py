# effect: state
# note: a table that the library reads at each call
import html
import html.entities


def attempt(probe):
    html.entities.html5["polluted;"] = "x"


def check(probe):
    return "escaped" if html.unescape("&polluted;") == "x" else "clean"
