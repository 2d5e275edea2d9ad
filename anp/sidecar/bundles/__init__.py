"""Agreed protocols as files that another daemon can read.

* `format`: the bytes of a bundle.
* `export`: writes what was agreed into a bundle.
* `bundles`: bundles out and in, with every check.
"""
