"""The site as visitors meet it: built without a warning, and usable by everyone."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from axe_playwright_python.base import AXE_FILE_PATH
from notebook_files import ROOT, read, series
from pages import served

import per_tutorial
import per_tutorial.conformance
import per_tutorial.replay

sys.path.insert(0, str(ROOT / "site"))
import build  # noqa: E402

PHONE, DESKTOP = (390, 844), (1280, 800)


def test_only_the_job_that_publishes_may_publish():
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "site.yml").read_text("utf-8"))
    assert workflow["permissions"] == {"contents": "read"}
    assert "permissions" not in workflow["jobs"]["build"]


def test_links_to_what_the_site_lacks_lead_to_the_repository(tmp_path):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "speed.md").touch()
    same = "[a](speed.md) [b](#x) [c](https://else.where) [d](nowhere.md) "
    found = build.reachable(f"{same}[e](../LICENSE#f)", Path("docs"), tmp_path)
    assert found.startswith(same) and found.endswith("/blob/main/LICENSE#f)")


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The folder of the site, built for these tests; a warning fails them."""
    folder = tmp_path_factory.mktemp("built") / "site"
    command = [sys.executable, ROOT / "site" / "build.py", folder]
    built = subprocess.run(command, capture_output=True, text=True)
    assert built.returncode == 0, built.stdout + built.stderr
    return folder


@pytest.mark.slow
def test_pages_hold_what_they_should(site):
    menu = (site / "index.html").read_text("utf-8")
    for page in (*series(), *(ROOT / "docs").glob("*.md")):
        assert f'href="{page.parent.name}/{page.stem}.html"' in menu
    framed = []
    for path in series():
        text = (site / "notebooks" / f"{path.stem}.html").read_text("utf-8")
        outputs = str([cell.get("outputs") for cell in read(path).cells])
        assert text.count("<video") == outputs.count("<video")
        assert not re.search("<script[^>]*mathjax", text, re.I)  # formulas need no web
        pictures = re.findall(r"<img[^>]*>", text)
        assert [tag for tag in pictures if not re.search(r'alt="\S', tag)] == []
        framed += re.findall(r'src="../(explorables/.*?)"', text)
    assert framed == [f"explorables/{name}/index.html" for name in build.EXPLORABLES.values()]
    assert [page for page in framed if not (site / page).is_file()] == []
    anchors = re.findall(r'id="per_tutorial\.([\w.]+)"', (site / "api.html").read_text("utf-8"))
    documented = {anchor.rpartition(".")[2] for anchor in anchors}
    for module in (per_tutorial.replay, per_tutorial, per_tutorial.conformance):
        names = {name for name in module.__all__ if callable(getattr(module, name))}
        assert names - documented == set()


# JavaScript: what is wider than the page and does not scroll in a box of its own.
TOO_WIDE = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
AXE = "axe.run(document, {resultTypes: ['violations'], iframes: false})"


@pytest.mark.browser
@pytest.mark.exhaustive
@pytest.mark.parametrize("size, scheme", [(PHONE, "dark"), (DESKTOP, "light")])
def test_a_page_is_accessible_and_fits_the_screen(site, browser, size, scheme):
    viewport = {"width": size[0], "height": size[1]}
    context = browser.new_context(viewport=viewport, color_scheme=scheme)
    with served(site) as address:
        # The README's badges come from elsewhere: tests stay on this machine.
        context.route(lambda url: not url.startswith(address), lambda route: route.abort())
        page = context.new_page()
        errors = []
        page.on("pageerror", lambda error: errors.append(str(error)))
        pages = ("api", "docs/results", "notebooks/02_uniform_dqn", "index", "explorables")
        for name in (f"{page}.html" for page in pages):
            page.goto(f"{address}/{name}")
            assert page.evaluate(TOO_WIDE) <= 0, name
            page.evaluate(Path(AXE_FILE_PATH).read_text("utf-8"))
            faults = page.evaluate(AXE)["violations"]
            serious = [each for each in faults if each["impact"] in ("serious", "critical")]
            found = [(each["id"], each["nodes"][0]["html"][:200]) for each in serious]
            assert found == [], name
        theme = page.evaluate("document.documentElement.dataset.theme")
        for frame in page.frames[1:]:
            frame.wait_for_selector("svg")
            assert frame.evaluate("document.documentElement.dataset.theme") == theme
            assert frame.evaluate("document.documentElement.scrollHeight - innerHeight") <= 2
        assert errors == []
    context.close()
