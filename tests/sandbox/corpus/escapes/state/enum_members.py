# effect: state
# note: a member for an Enum of the library
import http


def attempt(probe):
    http.HTTPStatus._value2member_map_[299] = "polluted"


def check(probe):
    return "escaped" if http.HTTPStatus._value2member_map_.get(299) == "polluted" else "clean"
