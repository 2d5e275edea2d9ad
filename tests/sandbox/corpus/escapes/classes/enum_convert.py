# effect: leak
# note: Enum._convert_ reads the variables of any loaded module
import enum


def attempt(probe):
    made = enum.Enum._convert_("Made", "os", lambda name: name == "getenv")
    return made.getenv(probe["env"])
