"""What was shown, as the fixture `shown` of tests/notebook collects it."""

import base64
import io

import numpy as np
from PIL import Image


def alt_texts(shown):
    """The alternative texts of all pictures."""
    return [
        options["metadata"]["image/png"]["alt"] for _, options in shown if "metadata" in options
    ]


def pictures(shown):
    """The PNGs of all pictures, as base64 text."""
    return [bundle["image/png"] for bundle, options in shown if "metadata" in options]


def decoded(picture):
    """A PNG in base64 as an image."""
    return Image.open(io.BytesIO(base64.b64decode(picture)))


def moving_square(count, height, width):
    """The frames of a film: a white square moves to the right."""
    for k in range(count):
        frame = np.zeros((height, width, 3), dtype=np.uint8)
        frame[10:30, 5 * k : 5 * k + 20] = 255
        yield frame
