"""The site as visitors meet it: what it is made of, and the built pages in Chromium."""

import contextlib
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag, urljoin, urlsplit

import pytest
import yaml
from axe_playwright_python.base import AXE_FILE_PATH
from notebook_files import ROOT, read, series
from pages import served
from PIL import Image

SITE = ROOT / "site"
sys.path.insert(0, str(SITE))

import explorable_pages  # noqa: E402
import generated  # noqa: E402
import rendering  # noqa: E402
import when_map  # noqa: E402

from per_tutorial.common.data import data_folder  # noqa: E402

PHONE, DESKTOP = (390, 844), (1280, 800)
LARGEST_SITE, LARGEST_FIRST_PAGE = 30_000_000, 1_000_000  # bytes

# What it is made of -----------------------------------------------------------------------------


@pytest.mark.slow
def test_the_page_of_results_says_what_the_studies_found():
    page = (ROOT / "docs" / "results.md").read_text("utf-8")
    differences = re.findall(r"[+−]\d+ \[[^]]*\]", generated.worlds())
    assert len(differences) == 6  # two for each world
    assert [text for text in differences if text not in page] == []


@pytest.mark.slow
def test_the_map_to_explore_has_the_numbers_of_the_results():
    same = when_map.DATA.read_text("utf-8") == when_map.written()
    assert same, "python site/when_map.py writes them anew"


def test_cells_that_get_an_explorable_exist():
    cells = {(path.stem, cell.id) for path in series() for cell in read(path).cells}
    assert set(explorable_pages.SLIDERS) - cells == set()


def test_colours_of_formulas_can_be_changed_by_the_page():
    html = rendering.mathml(r"\color{#882255}{\delta} + \color{#7A7A1F}{\alpha}", display=False)
    assert html.count("var(--symbol-882255, #882255)") == 1
    assert html.count("var(--symbol-7A7A1F, #7A7A1F)") == 1
    assert "\\" not in html


def test_dark_pages_have_a_value_for_each_colour_of_the_formulas():
    formulas = "".join(path.read_text("utf-8") for path in series())
    used = set(re.findall(r"color\{#(\w{6})\}", formulas))
    sheet = (SITE / "_static" / "site.css").read_text("utf-8")
    assert used - set(re.findall(r"--symbol-(\w{6}):", sheet)) == set()


def test_only_the_job_that_publishes_may_publish():
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "site.yml").read_text("utf-8"))
    assert workflow["permissions"] == {"contents": "read"}
    assert "permissions" not in workflow["jobs"]["build"]


# The built pages --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The folder of the site, built for these tests; a warning fails them."""
    folder = tmp_path_factory.mktemp("built") / "site"
    command = [sys.executable, SITE / "build.py", folder]
    built = subprocess.run(command, capture_output=True, text=True)
    assert built.returncode == 0, built.stdout + built.stderr
    return folder


class Page(HTMLParser):
    """What a page refers to, and what can be referred to in it."""

    def __init__(self, path):
        super().__init__()
        self.references, self.anchors, self.without_alt = [], set(), []
        self.feed(path.read_text("utf-8"))

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        self.anchors |= {found[key] for key in ("id", "name") if key in found}
        self.references += [found[key] for key in ("href", "src", "poster") if found.get(key)]
        if tag == "img" and not (found.get("alt") or found.get("role") == "presentation"):
            self.without_alt.append(found.get("src"))


def is_elsewhere(reference):
    return bool(urlsplit(reference).scheme) or reference.startswith("//")


def broken_links(folder):
    """(page, reference) of each link, picture, script or style that leads nowhere in the folder."""
    pages = {path.relative_to(folder).as_posix(): Page(path) for path in folder.rglob("*.html")}
    broken = []
    for name, page in pages.items():
        for reference in page.references:
            if is_elsewhere(reference):
                continue
            target, anchor = urldefrag(urljoin(name, reference))
            target = unquote(urlsplit(target).path) or name
            found = (folder / target).is_file()
            if not found or (anchor and target in pages and anchor not in pages[target].anchors):
                if anchor or reference != "#":
                    broken.append((name, reference))
    return broken


@pytest.mark.slow
def test_no_link_picture_or_anchor_is_broken(site):
    # The search page's own script makes its anchors; the theme's "#" means "stay here".
    assert broken_links(site) == []


def test_broken_links_are_noticed(tmp_path):
    (tmp_path / "a.html").write_text(
        '<h1 id="x"><a href="b.html#y"></a><img src="no.png">', encoding="utf-8"
    )
    (tmp_path / "b.html").write_text(
        '<a href="a.html#x"></a><a href="https://else.where"></a>', encoding="utf-8"
    )
    assert broken_links(tmp_path) == [("a.html", "b.html#y"), ("a.html", "no.png")]


@pytest.mark.slow
def test_pictures_have_alternative_texts(site):
    pages = [path for path in site.rglob("*.html") if "explorables/" not in path.as_posix()]
    missing = {path.name: Page(path).without_alt for path in pages}
    assert {name: pictures for name, pictures in missing.items() if pictures} == {}


@pytest.mark.slow
def test_every_notebook_is_there_and_can_be_downloaded_as_it_is(site):
    for path in series():
        page = (site / "notebooks" / f"{path.stem}.html").read_text("utf-8")
        assert "Open in Colab" in page
        assert f'href="../_sources/notebooks/{path.name}"' in page
        assert (site / "_sources" / "notebooks" / path.name).read_bytes() == path.read_bytes()
        videos = sum("<video" in str(cell.get("outputs")) for cell in read(path).cells)
        assert page.count("<video") == videos


@pytest.mark.slow
def test_every_public_name_is_in_the_reference(site):
    pages = [Page(path) for path in (site / "api").glob("*.html")]
    anchors = set().union(*(page.anchors for page in pages))
    missing = [
        f"{place}.{name}"
        for place, name in generated.public_names()
        if not {f"{place}.{name}", f"per_tutorial.{name}"} & anchors
    ]
    assert missing == []


@pytest.mark.slow
def test_the_site_is_small(site):
    sizes = [path.stat().st_size for path in site.rglob("*") if path.is_file()]
    assert sum(sizes) < LARGEST_SITE


@pytest.mark.slow
def test_measurements_are_folded_on_two_pages(site):
    docs = {path.name for path in (site / "docs").glob("*.html")}
    assert docs == {
        "examined.html",
        "many_machines.html",
        "package.html",
        "results.html",
        "sb3_options.html",
        "speed.html",
        "unseen_bugs.html",
        "which_buffer.html",
    }
    tables = len(list((ROOT / "docs").glob("*_speed.md")))
    speed = (site / "docs" / "speed.html").read_text("utf-8")
    assert speed.count("<summary>The tables</summary>") == tables
    names = sorted(path.name for path in data_folder().glob("*.csv.gz"))
    shipped = [name.removesuffix(".csv.gz") for name in names]
    results = (site / "docs" / "results.html").read_text("utf-8")
    assert re.findall(r"<summary><code>([\w-]+)</code></summary>", results) == shipped
    for page in (speed, results):
        assert page.count("<details>") == page.count("</details>")


@pytest.mark.slow
def test_the_menu_has_three_parts_and_the_package_five_entries(site):
    menu = (site / "index.html").read_text("utf-8")
    captions = re.findall(r'class="caption-text">([^<]+)<', menu)
    assert captions == ["The series", "The package", "More"]
    package = menu[menu.index(">The package<") : menu.index(">More<")]
    assert len(re.findall(r'class="toctree-l1', package)) == 5


def test_the_picture_stands_still_where_motion_is_not_wanted():
    page = (SITE / "index.md").read_text("utf-8")
    still = r'<source media="\(prefers-reduced-motion: reduce\)" srcset="_static/(.+?)">'
    (name,) = re.findall(still, page)
    with Image.open(ROOT / "docs" / name) as picture:
        assert getattr(picture, "n_frames", 1) == 1
    with Image.open(ROOT / "docs" / re.search(r'img src="_static/(.+?)"', page)[1]) as picture:
        assert picture.n_frames > 1
        assert Path(picture.filename).stat().st_size < 300_000


@pytest.fixture(scope="module")
def address(site):
    """The address of a server of the site on this machine."""
    with served(site) as address:
        yield address


class Visit:
    """A page in a browser of a size and a scheme; keeps what went wrong and what was fetched."""

    def __init__(self, browser, address, size=DESKTOP, scheme="light"):
        width, height = size
        self.context = browser.new_context(
            viewport={"width": width, "height": height}, color_scheme=scheme
        )
        self.address, self.wrong, self.bytes = address, [], 0
        self.page = self.context.new_page()
        self.page.on("console", self._console)
        self.page.on("pageerror", lambda error: self.wrong.append(f"error: {error}"))
        self.page.on("request", self._request)
        self.page.on("response", self._response)

    def _console(self, message):
        if message.type in ("error", "warning"):
            self.wrong.append(f"console: {message.text}")

    def _request(self, request):
        if not request.url.startswith((self.address, "data:", "blob:")):
            self.wrong.append(f"from elsewhere: {request.url}")

    def _response(self, response):
        if response.status >= 400:
            self.wrong.append(f"{response.status}: {response.url}")
        if response.url.startswith(self.address):
            with contextlib.suppress(Exception):  # a redirect has no body
                self.bytes += len(response.body())

    def open(self, path, until="networkidle"):
        """Open a page, and wait until nothing more is fetched, or until it is loaded."""
        self.page.goto(f"{self.address}/{path}", wait_until=until)
        return self.page


@pytest.fixture
def visit(browser, address):
    visits = []

    def visit(*arguments):
        visits.append(Visit(browser, address, *arguments))
        return visits[-1]

    yield visit
    for each in visits:
        each.context.close()


def pages_of(site):
    """All pages, but the explorables', which are tested elsewhere."""
    names = (path.relative_to(site).as_posix() for path in sorted(site.rglob("*.html")))
    unneeded = ("_static/", "explorables/")
    return [name for name in names if not name.startswith(unneeded)]


# JavaScript: names of what is wider than the page and does not scroll in a box of its own.
TOO_WIDE = """() => {
    const width = document.documentElement.clientWidth;
    return document.documentElement.scrollWidth > width
        ? [...document.querySelectorAll("main *")]
            .filter(e => e.getBoundingClientRect().right > width)
            .slice(0, 3).map(e => e.outerHTML.slice(0, 120))
        : [];
}"""
PICTURES = (
    """() => [...document.images].filter(i => !i.complete || !i.naturalWidth).map(i => i.src)"""
)
FORMULAS = """() => [...document.querySelectorAll("math")]
    .filter(m => m.checkVisibility() && !(m.getBoundingClientRect().width > 2)).length"""


@pytest.mark.browser
@pytest.mark.slow
def test_pages_show_all_they_hold_and_fetch_nothing_from_elsewhere(site, visit):
    here = visit()
    for name in pages_of(site):
        page = here.open(name, "load")
        # Pictures load when they come near: bring them near.
        page.evaluate(
            "document.querySelectorAll('[loading=lazy]').forEach(e => e.loading = 'eager')"
        )
        page.wait_for_function("[...document.images].every(image => image.complete)")
        assert page.evaluate(PICTURES) == [], name
        for video in page.locator("video").all():
            video.scroll_into_view_if_needed()
            page.wait_for_function("video => video.readyState >= 2", arg=video.element_handle())
        for width, height in (PHONE, DESKTOP):
            page.set_viewport_size({"width": width, "height": height})
            assert page.evaluate(FORMULAS) == 0, name
            assert page.evaluate(TOO_WIDE) == [], name
        assert "$" not in page.locator("main p").evaluate_all(
            "all => all.map(p => p.cloneNode(true)).map(p => {"
            "p.querySelectorAll('code').forEach(c => c.remove()); return p.textContent}).join('')"
        ), f"{name}: a formula was left as it was"
        assert here.wrong == [], name


@pytest.mark.browser
@pytest.mark.slow
def test_formulas_are_set_in_the_font_of_the_site(visit):
    page = visit().open("notebooks/03_per_dqn.html")
    fonts = page.evaluate(
        "[...document.fonts].filter(f => f.status == 'loaded').map(f => f.family)"
    )
    assert any("STIX Two Math" in font for font in fonts)


@pytest.mark.browser
@pytest.mark.slow
def test_the_first_page_is_light(visit):
    here = visit()
    here.open("index.html")
    assert here.bytes < LARGEST_FIRST_PAGE


@pytest.mark.browser
@pytest.mark.slow
def test_search_finds_importance_sampling(visit):
    here = visit()
    page = here.open("index.html")
    page.keyboard.press("Control+k")
    page.keyboard.type("importance sampling")
    page.keyboard.press("Enter")
    page.wait_for_url("**/search.html*")
    results = page.locator("#search-results li a")
    results.first.wait_for()
    page.wait_for_function(
        "document.querySelector('#search-results p').innerText.includes('found')"
    )
    links = results.evaluate_all("all => all.map(a => a.getAttribute('href'))")
    assert any("03_per_dqn" in link for link in links)
    assert here.wrong == []


@pytest.mark.browser
@pytest.mark.slow
def test_a_folded_cell_opens_by_keyboard(visit):
    page = visit().open("notebooks/01_segment_tree.html")
    fold = page.locator("details.hide summary").first
    code = page.locator("details.hide div.highlight").first
    assert not code.is_visible()
    fold.focus()
    page.keyboard.press("Enter")
    assert code.is_visible()


@pytest.mark.browser
@pytest.mark.slow
def test_a_click_darkens_the_page_and_its_explorables(visit):
    page = visit().open("explorables.html")
    page.locator(".theme-switch-button:visible").first.click()  # from the system's choice to light
    page.locator(".theme-switch-button:visible").first.click()
    themes = "[document, ...[...document.querySelectorAll('iframe')].map(f => f.contentDocument)]"
    page.locator("iframe").last.scroll_into_view_if_needed()
    page.wait_for_load_state("networkidle")
    theme = page.evaluate("document.documentElement.dataset.theme")
    page.wait_for_function(f"{themes}.every(d => d.documentElement.dataset.theme === '{theme}')")


# JavaScript: what axe finds. The contrast of each of ten thousand words takes minutes: of all text
# in the same colours and the same size, the first stands for the rest.
VIOLATIONS = """async () => {
    const examples = new Map();
    for (const element of document.querySelectorAll("body *")) {
        const texts = [...element.childNodes].filter(n => n.nodeType === Node.TEXT_NODE);
        if (!texts.some(text => text.data.trim()) || !element.checkVisibility()) continue;
        const {color, fontSize, fontWeight} = getComputedStyle(element);
        const look = [color, fontSize, fontWeight];
        for (let ground = element; ground; ground = ground.parentElement) {
            const {backgroundColor, opacity} = getComputedStyle(ground);
            look.push(backgroundColor, opacity);
        }
        const key = look.filter(part => part !== "rgba(0, 0, 0, 0)" && part !== "1").join();
        if (!examples.has(key)) examples.set(key, element);
    }
    const options = {resultTypes: ["violations"], iframes: false};
    const contrast = await axe.run(
        {include: [...examples.values()]}, {...options, runOnly: ["color-contrast"]});
    const others = await axe.run(
        document, {...options, rules: {"color-contrast": {enabled: false}}});
    return [...contrast.violations, ...others.violations];
}"""


@pytest.mark.browser
@pytest.mark.slow
@pytest.mark.parametrize(
    "everything", [False, pytest.param(True, marks=pytest.mark.exhaustive)], ids=["some", "all"]
)
def test_pages_are_accessible(site, visit, everything):
    """Every third page in one of four looks, in turns; or all pages in all of them."""
    looks = [visit(size, scheme) for size in (PHONE, DESKTOP) for scheme in ("light", "dark")]
    faults = {}
    for k, name in enumerate(pages_of(site)[:: 1 if everything else 3]):
        for here in looks if everything else [looks[k % len(looks)]]:
            page = here.open(name, "load")
            page.evaluate(Path(AXE_FILE_PATH).read_text("utf-8"))
            for fault in page.evaluate(VIOLATIONS):
                if fault["impact"] in ("serious", "critical"):
                    nodes = [node["html"][:200] for node in fault["nodes"][:3]]
                    faults.setdefault(fault["id"], []).append((name, len(fault["nodes"]), nodes))
    assert faults == {}
