"""Counts, spans, live figures and work in progress.

* `observer`: the one place that counts and traces what happens.
* `metrics`: families of figures.
* `metrics_text`: the figures in the text form of Prometheus.
* `tracing`: spans.
* `in_flight`: counts work in progress, so that a stop can wait for it.
* `usage`: counts calls by protocol, and writes them now and then.
"""
