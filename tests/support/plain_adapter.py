"""The adapter of the plain buffer, and of whatever is made of it."""

from per_tutorial.conformance.adapters import Proportional
from per_tutorial.conformance.plain import Plain


class PlainAdapter(Proportional):
    """`conformance.plain.Plain`, or a subclass of it, such as a planted bug."""

    packages = ()

    def __init__(self, buffer=Plain, **options):
        self.kind, self.name, self._given = buffer, buffer.__name__, options
