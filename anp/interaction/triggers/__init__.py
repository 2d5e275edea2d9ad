"""Subscriptions: what starts a task again and again, without I/O and without a clock.

* `subscription`: the object with its triggers, and its form in JSON.
* `schedule`: the times at which a time trigger is due.
* `places`: circles and polygons on the earth.
* `watch`: the machine of one subscription: what comes in, and the firings that follow.
"""
