# effect: write
# note: the configuration names a factory
import logging.config


def attempt(probe):
    logging.config.dictConfig(
        {
            "version": 1,
            "disable_existing_loggers": False,
            "handlers": {"h": {"()": "io.open", "file": probe["write_file"], "mode": "w"}},
            "root": {"handlers": ["h"]},
        }
    )
