"""Pages in a real browser: a Chromium for the tests that need one, and a server of a folder."""

import contextlib
import functools
import http.server
import os
import shutil
import threading

import pytest
from playwright.sync_api import sync_playwright

ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--no-first-run",
    "--disable-sync",
]


@contextlib.contextmanager
def chromium():
    """A running Chromium or Chrome. Where there is none, the test is skipped, or fails if it must
    run.
    """
    names = ("chromium", "chromium-browser", "google-chrome")
    path = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, names)), None)
    if path is None:
        reason = "no Chromium found: install one, or set CHROMIUM to its path"
        required = os.environ.get("PER_TUTORIAL_REQUIRE_BROWSER") == "1"
        (pytest.fail if required else pytest.skip)(reason)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
        yield browser
        browser.close()


class Quiet(http.server.SimpleHTTPRequestHandler):
    """A server that writes no log."""

    def log_message(self, *_):
        pass


@contextlib.contextmanager
def served(folder):
    """The address of a server of this folder, on this machine."""
    handler = functools.partial(Quiet, directory=folder)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
