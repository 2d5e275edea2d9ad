"""Module halves, loaded into the sandbox and checked before they are used.

* `loaded`: a half in its worker.
* `loader`: loads a half and its document.
* `protocol`: a half with its document: encodes, decodes, validates, handles.
* `workshop`: tries a half in a worker of its own.
"""
