"""Python runs this at start: Colab's kernel, too, has `google.colab` loaded before the
first cell.
"""

import google.colab  # noqa: F401
