"""The folder of one daemon, and messages that explain a mistake in it.

* `home`: the files of a home, and safe writing to them.
* `explain`: an error of a configuration file in the owner's terms.
* `rest_cipher`: encryption of contents in the store, each for its place.
* `ownership`: files and folders of a home that other users of the machine must not
  reach.
"""
