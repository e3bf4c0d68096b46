"""A reader's first visit: the notebooks in a real JupyterLab, in Chromium."""

import contextlib
import json
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request

import pytest
from notebook_files import NOTEBOOKS, code_cells, read, write
from playwright.sync_api import expect

pytestmark = pytest.mark.browser

PAGE = "01_segment_tree.ipynb"
MINUTE = 60_000  # milliseconds, Playwright's unit
TOKEN = "a-token-for-this-test"
# JavaScript for the notebook's code cells as they would be saved: JupyterLab shows errors and what
# is written to stderr alike.
CODE_CELLS = """jupyterapp.shell.currentWidget.model.toJSON().cells.filter(
    cell => cell.cell_type === "code")"""
# Every cell's output stays in the page, scrolled to or not, and no news dialog covers the page.
SETTINGS = {
    "notebook-extension/tracker": {"windowingMode": "none"},
    "apputils-extension/notification": {"fetchNews": "false", "checkForUpdates": False},
}


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    """The address of a JupyterLab with a notebook: `saved/` as published, and `fresh/`."""
    home = tmp_path_factory.mktemp("lab")
    for folder in ("saved", "fresh"):
        (home / "notebooks" / folder).mkdir(parents=True)
    notebook = read(NOTEBOOKS / PAGE)
    write(notebook, home / "notebooks" / "saved" / PAGE)
    for cell in code_cells(notebook):
        cell.outputs, cell.execution_count = [], None
    write(notebook, home / "notebooks" / "fresh" / PAGE)
    for name, settings in SETTINGS.items():
        file = home / "settings" / "@jupyterlab" / f"{name}.jupyterlab-settings"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(settings), encoding="utf-8")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    places = {
        "JUPYTER_CONFIG_DIR": "config",
        "JUPYTER_DATA_DIR": "data",  # where signatures of trust are: a saved notebook has none
        "JUPYTER_RUNTIME_DIR": "runtime",
        "JUPYTERLAB_SETTINGS_DIR": "settings",
        "JUPYTERLAB_WORKSPACES_DIR": "workspaces",
    }
    environment = {**os.environ, **{key: str(home / folder) for key, folder in places.items()}}
    environment["PER_TUTORIAL_FAST"] = "1"
    command = [sys.executable, "-m", "jupyter", "lab", "--no-browser", "--allow-root"]
    command += [f"--ServerApp.port={port}", "--ServerApp.port_retries=0"]
    command += ["--LabApp.expose_app_in_browser=True", f"--IdentityProvider.token={TOKEN}"]
    command += [f"--ServerApp.root_dir={home / 'notebooks'}"]
    with open(home / "log", "w", encoding="utf-8") as log:
        server = subprocess.Popen(command, env=environment, stdout=log, stderr=subprocess.STDOUT)
    try:
        address = f"http://127.0.0.1:{port}"
        wait_for(f"{address}/api/status?token={TOKEN}", server, home / "log")
        yield address
    finally:
        server.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            server.wait(20)  # for its kernels; those that are left end when they see it gone
        server.kill()


def wait_for(url, server, log):
    """Wait until a server answers."""
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and server.poll() is None:
        try:
            return urllib.request.urlopen(url, timeout=10).close()
        except (urllib.error.URLError, OSError):
            time.sleep(0.2)
    pytest.fail(f"JupyterLab did not start:\n{log.read_text(encoding='utf-8')}")


@pytest.fixture
def open_notebook(browser, lab):
    """Opens a notebook of the server in a new page, and returns the page."""
    context = browser.new_context(viewport={"width": 1400, "height": 1000})
    context.set_default_timeout(2 * MINUTE)

    def open_notebook(path):
        page = context.new_page()
        # Reset, or JupyterLab opens what earlier pages had open as well.
        page.goto(f"{lab}/lab/tree/{path}?token={TOKEN}&reset")
        page.wait_for_selector(".jp-Notebook .jp-CodeCell")
        return page

    yield open_notebook
    context.close()


def run_all(page):
    """Click Run > Run All Cells, and wait until every code cell has run or one has failed."""
    expect(page.locator(".jp-KernelName")).to_contain_text("Python 3", timeout=2 * MINUTE)
    page.get_by_role("menuitem", name="Run", exact=True).click()
    page.get_by_role("menuitem", name="Run All Cells", exact=True).click()
    page.wait_for_function(
        f"""() => {{
            const cells = {CODE_CELLS};
            const failed = cells.some(c => c.outputs.some(o => o.output_type === "error"));
            return failed || cells.every(c => c.execution_count);
        }}""",
        timeout=5 * MINUTE,
    )


def pictures(page):
    """The sources of all pictures that cells show."""
    return page.locator(".jp-OutputArea img").evaluate_all("images => images.map(i => i.src)")


def settled_pictures(page):
    """The pictures once there are any and none has come or changed for two seconds."""
    before, now = [], pictures(page)
    deadline = time.monotonic() + 120
    while not now or now != before:
        assert time.monotonic() < deadline, "no pictures, or they never come to rest"
        page.wait_for_timeout(2000)
        before, now = now, pictures(page)
    return now


def expect_video_ready(page):
    """Wait until the notebook's video has data to play (readyState 2 or more)."""
    video = page.locator(".jp-OutputArea video").first
    video.scroll_into_view_if_needed()
    page.wait_for_function("video => video.readyState >= 2", arg=video.element_handle())


def test_a_saved_notebook_shows_its_video_before_it_is_trusted(open_notebook):
    expect_video_ready(open_notebook(f"saved/{PAGE}"))


def test_a_reader_runs_all_moves_a_slider_and_sees_the_video(open_notebook):
    page = open_notebook(f"fresh/{PAGE}")
    assert pictures(page) == []
    run_all(page)
    outputs = page.evaluate(f"{CODE_CELLS}.flatMap(cell => cell.outputs)")
    assert [each["evalue"] for each in outputs if each["output_type"] == "error"] == []
    expect_video_ready(page)

    handle = page.locator(".widget-slider .noUi-handle").first
    handle.scroll_into_view_if_needed()
    before = settled_pictures(page)
    at_the_end = handle.get_attribute("aria-valuenow") == handle.get_attribute("aria-valuemax")
    handle.press("Home" if at_the_end else "End")
    deadline = time.monotonic() + 120
    while pictures(page) == before:
        assert time.monotonic() < deadline, "the slider moved, the picture stayed"
        page.wait_for_timeout(100)
