"""Test cases of an agreed document: made, judged, run and compared (ANP-48 to ANP-54).

* `case`: one test case, its fixtures, and the result of a run.
* `run`: runs agreed cases, and compares messages by their values.
* `judge`: judges cases by the document, and the set that the provider completed.
* `samples`: values whose places all differ, so that an exchange is noticed.
* `text`: the set of cases as Markdown, written and read.
* `proposal`: the requester's cases with their requests, the provider's responses.
"""
