"""Make the pictures that readers without JavaScript see: `python site/explorables/pictures.py`.

Each is what its page shows (in the state that the picture's alternative text describes), taken in
Chromium and reduced to a few colours.
"""

import functools
import http.server
import io
import os
import shutil
import threading
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright

HERE = Path(__file__).parent
WIDTH = 704  # of a picture, in CSS pixels
# The button to press before.
PRESS = {"sum-tree": None, "alpha-beta": None, "cliffwalk": "#skip", "when-map": None}
COLORS = {"when-map": 256}  # where they tell something; else 64


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


def main() -> None:
    handler = functools.partial(Quiet, directory=HERE)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    path = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        page = browser.new_page(
            viewport={"width": WIDTH + 40, "height": 900},
            device_scale_factor=1.5,
            reduced_motion="reduce",
        )
        for name, button in PRESS.items():
            page.goto(f"http://127.0.0.1:{server.server_port}/{name}/index.html")
            page.wait_for_selector("#picture svg, #curves svg")
            if button:
                page.click(button)
            png = page.locator(".picture").screenshot()
            picture = Image.open(io.BytesIO(png)).convert("RGB")
            picture = picture.quantize(COLORS.get(name, 64), dither=Image.Dither.NONE)
            picture.save(HERE / name / "picture.png", optimize=True)
            height = round(picture.height * WIDTH / picture.width)
            print(f"{name}: {WIDTH} × {height}. {page.locator('#status').text_content()}")
        browser.close()
    server.shutdown()


if __name__ == "__main__":
    main()
