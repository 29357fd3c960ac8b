# SPDX-License-Identifier: Apache-2.0
"""Which micro-batch of a step a gradient is of, and whether an optimizer takes it."""


class MicroBatches:
    """Of the step under way."""

    def __init__(self):
        self._numbers, self._seen = {}, {}  # of a module: the micro-batch under way, and names whose gradients it has
        self.waiting, self.given = set(), set()  # names whose gradients wait for an optimizer; those that went to one, and its id
        self._dropped = 0

    def number(self, name, root):
        """The micro-batch that a gradient is of; None: it is none of this step, but of another loss, or of a closure that is called again."""
        if name in self.given:
            return None
        self.waiting.add(name)
        seen = self._seen.setdefault(root, set())
        if name in seen:
            self._next(root)
        seen.add(name)
        return self._numbers.get(root, 0)

    def _next(self, root):
        self._numbers[root] = self.last(root) + 1
        self._seen[root].clear()

    def last(self, root=None):
        """The micro-batch under way."""
        return self._numbers.get(root, 0) if root is not None else max(self._numbers.values(), default=0)

    def progress(self):
        """Another one behind each gradient of a backward."""
        return sum(self._numbers.values()), sum(map(len, self._seen.values()))

    def give(self, names):
        """As an optimizer gets these gradients."""
        self.given |= names
        self.waiting -= names

    def drop(self, names):
        """Gradients that are set to zero before an optimizer gets them."""
        if self.waiting & names:
            self.waiting -= names
            for root in [root for root, seen in self._seen.items() if seen]:
                self._next(root)
            self._dropped = self.last()

    def scalars(self):
        return {"dropped": self._dropped} if self._dropped else {}


def parameters_of(owner):
    """Of a module, or of an optimizer."""
    return owner.parameters() if hasattr(owner, "parameters") else [p for group in owner.param_groups for p in group["params"]]
