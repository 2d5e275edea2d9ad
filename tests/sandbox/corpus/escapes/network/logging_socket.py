# effect: network
import logging
import logging.handlers


def attempt(probe):
    made = logging.handlers.SocketHandler(probe["host"], probe["tcp_port"])
    made.emit(logging.LogRecord("n", 10, "p", 1, "m", None, None))
