"""The documents as a site: its sources, made from `docs` and the code, and checks.

`make docs` builds the site; `docs/site/zensical.toml` has the order of its pages.

* `__main__`: writes the sources, and checks what was built.
* `built`: checks of the built pages: links, anchors, and nothing from elsewhere.
* `cast`: a picture of a terminal, drawn from what commands really print.
* `links`: leads each link of a document to a page of the site.
* `messages`: the messages of errors, read from the source code.
* `pages`: puts the sources together.
* `pictures`: the drawings of the concepts, made from text.
* `reference`: the pages of reference: commands, settings, operations, errors.
"""
