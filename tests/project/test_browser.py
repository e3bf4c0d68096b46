"""A reader's first visit: a notebook in a real JupyterLab, in Chromium."""

import contextlib
import json
import os
import socket
import subprocess
import sys
import time
import urllib.request

import pytest
from notebook_files import code_cells, read, series, write
from playwright.sync_api import expect

pytestmark = [pytest.mark.browser, pytest.mark.exhaustive]

PAGE = series()[1]
MINUTE = 60_000  # milliseconds, Playwright's unit
TOKEN = "a-token-for-this-test"
# JavaScript: the notebook's code cells as they would be saved.
CELLS = "jupyterapp.shell.currentWidget.model.toJSON().cells"
CODE_CELLS = f"{CELLS}.filter(cell => cell.cell_type === 'code')"
# Every cell's output stays in the page, scrolled to or not, and no news dialog covers the page.
SETTINGS = {
    "notebook-extension/tracker": {"windowingMode": "none"},
    "apputils-extension/notification": {"fetchNews": "false", "checkForUpdates": False},
}


@pytest.fixture
def lab(tmp_path):
    """The address of a JupyterLab with a notebook that nobody has run."""
    notebook = read(PAGE)
    for cell in code_cells(notebook):
        cell.outputs, cell.execution_count = [], None
    (tmp_path / "notebooks").mkdir()
    write(notebook, tmp_path / "notebooks" / PAGE.name)
    for name, settings in SETTINGS.items():
        folder = tmp_path / ".jupyter" / "lab" / "user-settings" / "@jupyterlab"
        file = folder / f"{name}.jupyterlab-settings"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(settings), encoding="utf-8")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = {**os.environ, "HOME": str(tmp_path), "PER_TUTORIAL_FAST": "1"}
    command = [sys.executable, "-m", "jupyter", "lab", "--no-browser", "--allow-root"]
    command += [f"--ServerApp.port={port}", "--ServerApp.port_retries=0"]
    command += ["--LabApp.expose_app_in_browser=True", f"--IdentityProvider.token={TOKEN}"]
    command += [f"--ServerApp.root_dir={tmp_path / 'notebooks'}"]
    with open(tmp_path / "log", "w", encoding="utf-8") as log:
        server = subprocess.Popen(command, env=environment, stdout=log, stderr=subprocess.STDOUT)
    address = f"http://127.0.0.1:{port}"
    deadline = time.monotonic() + 120
    try:
        while not answers(f"{address}/api/status?token={TOKEN}"):
            late = server.poll() is not None or time.monotonic() > deadline
            assert not late, (tmp_path / "log").read_text(encoding="utf-8")
            time.sleep(0.2)
        yield address
    finally:
        server.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            server.wait(20)  # for its kernels; those that are left end when they see it gone
        server.kill()


def answers(url):
    """Whether a server is there."""
    with contextlib.suppress(OSError):
        urllib.request.urlopen(url, timeout=10).close()
        return True


def test_a_reader_runs_all_and_sees_pictures_and_the_film(browser, lab):
    page = browser.new_page(viewport={"width": 1400, "height": 1000})
    page.set_default_timeout(2 * MINUTE)
    page.goto(f"{lab}/lab/tree/{PAGE.name}?token={TOKEN}")
    page.wait_for_selector(".jp-Notebook .jp-CodeCell")
    pictures = page.locator(".jp-OutputArea img")
    assert pictures.count() == 0
    expect(page.locator(".jp-KernelName")).to_contain_text("Python 3", timeout=2 * MINUTE)
    page.get_by_role("menuitem", name="Run", exact=True).click()
    page.get_by_role("menuitem", name="Run All Cells", exact=True).click()
    # Until every code cell has run or one has failed
    failed = "cell.outputs.some(output => output.output_type === 'error')"
    ended = f"cells => cells.every(cell => cell.execution_count) || cells.some(cell => {failed})"
    page.wait_for_function(f"() => ({ended})({CODE_CELLS})", timeout=5 * MINUTE)
    outputs = page.evaluate(f"{CODE_CELLS}.flatMap(cell => cell.outputs)")
    assert [each["evalue"] for each in outputs if each["output_type"] == "error"] == []
    assert pictures.count() > 0
    film = page.locator(".jp-OutputArea video").first
    film.scroll_into_view_if_needed()
    page.wait_for_function("film => film.readyState >= 2", arg=film.element_handle())
