"""Counts, spans, live figures and work in progress.

* `observer`: counts and traces the daemon's work, and lets a stop wait for it.
* `call_entry`: the entry of one call in the access log and in lists.
* `call_log`: the access log, which keeps those entries on disk.
* `history`: calls over time, by peer and with latencies, for charts.
* `line_files`: files of lines, bounded by size and age.
* `log_limit`: limits the log lines of each cause, and counts the others.
* `metrics`: families of figures; the figures in the text form of Prometheus.
* `tracing`: the parts of OpenTelemetry that make spans.
* `usage`: counts calls by protocol, and writes them now and then.
"""
