"""JSON as all packages read and write it. Pure, and below all of them.

* `exact_numbers`: numbers of JSON that keep each digit.
"""
