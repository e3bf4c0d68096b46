"""In the place of a parser of web addresses, for the processes that tests start.

`jsonschema` imports it where it is installed, as Jupyter does, and it reads its grammar for 1.6
seconds: in each of a dozen processes of a Ray cluster, too. No test needs it.
"""

raise ImportError("left out of the tests, to save time")
