"""The site's explorables in Chromium: the package's numbers, and a page that everyone can use."""

import itertools

import numpy as np
import pytest
from axe_playwright_python.sync_playwright import Axe
from notebook_files import ROOT
from pages import served
from playwright.sync_api import expect

from per_tutorial.replay.samplers.proportional import ProportionalSampler
from per_tutorial.replay.trees import SumTree

pytestmark = pytest.mark.browser


@pytest.fixture
def visit(browser):
    """Opens an explorable; at the end, nothing may have failed or come from elsewhere."""
    contexts, faults, urls = [], [], []
    with served(ROOT / "site" / "explorables") as address:

        def visit(name, width=1280, **settings):
            viewport = {"width": width, "height": 900}
            context = browser.new_context(viewport=viewport, reduced_motion="reduce", **settings)
            contexts.append(context)
            page = context.new_page()
            page.on("console", lambda message: faults.append(message.text))
            page.on("pageerror", lambda error: faults.append(str(error)))
            page.on("request", lambda request: urls.append(request.url))
            page.goto(f"{address}/{name}/index.html")
            page.wait_for_selector("#app svg")
            return page

        yield visit
        for context in contexts:
            context.close()
    assert [*faults, *(url for url in urls if not url.startswith((address, "data:")))] == []


def compute(page, name, body, argument):
    """Run JavaScript with a page's module in `m` and the random numbers in `r`."""
    modules = f'const m = await import("./{name}.js"), r = await import("../random.js");'
    return page.evaluate(f"async (given) => {{ {modules} {body} }}", argument)


def test_a_tree_finds_what_the_package_finds(visit):
    rng = np.random.default_rng(0)
    cases, expected = [], []
    for capacity in [*range(1, 17)] * 3:
        values = np.where(rng.random(capacity) < 0.5, 0, rng.random(capacity) * 20)
        values[rng.integers(capacity)] = 0.1
        tree = SumTree(capacity)
        tree.set(range(capacity), values)
        # Anywhere, and at the edges: where a strip begins, and the last number below the total.
        ends = np.concatenate([[0.0], np.cumsum(values)])
        ends = np.concatenate([ends, np.nextafter(ends, 0), [np.nextafter(tree.total, 0)]])
        inside = (ends >= 0) & (ends < tree.total)
        prefixes = np.append(rng.random(40) * tree.total, ends[inside])
        cases.append([values.tolist(), prefixes.tolist()])
        expected.append([tree.nodes.tolist(), tree.find(prefixes).tolist()])
    ours = compute(
        visit("sum-tree"),
        "sum-tree",
        """return given.map(([values, prefixes]) => {
            const tree = new m.SumTree(values.length);
            values.forEach((value, leaf) => tree.set(leaf, value));
            return [Array.from(tree.nodes), prefixes.map((prefix) => tree.find(prefix))];
        });""",
        cases,
    )
    assert ours == expected


def test_probabilities_draws_and_weights_are_those_of_the_package(visit):
    rng = np.random.default_rng(1)
    cases, expected = [], []
    ways = ("batch", "buffer", "none")
    settings = itertools.product((1, 5, 50), (0.0, 0.6, 1.0), (0.0, 0.4, 1.0), ways)
    for size, alpha, beta, normalize in settings:
        td_errors = rng.normal(size=(1, size)) * 3
        td_errors[0, rng.integers(size)] = 0.0
        sampler = ProportionalSampler(size, [len(cases)], alpha=alpha, normalize=normalize)
        slots, sizes = np.arange(size)[None], np.array([size])
        sampler.add(slots)
        sampler.update(slots, td_errors)
        state = str(sampler.streams.states[0])
        cases.append([td_errors[0].tolist(), alpha, beta, state, normalize])
        P = sampler.probabilities(slots, sizes)[0]
        drawn, _, weights = sampler.sample(32, sizes, beta)
        expected.append((P, drawn[0], weights[0], weights.sum() ** 2 / (weights**2).sum()))
    ours = compute(
        visit("alpha-beta"),
        "alpha-beta",
        """return given.map(([errors, alpha, beta, state, normalize]) => {
            const tree = m.priorityTree(errors, alpha), P = m.probabilities(tree);
            const drawn = m.sample(tree, 32, r.stream(state));
            const weights = m.importanceWeights(P, drawn, beta, normalize);
            return [P, drawn, weights, m.effectiveSize(weights)];
        });""",
        cases,
    )
    for found, wanted in zip(ours, expected, strict=True):
        np.testing.assert_array_equal(found[1], wanted[1])
        for k in (0, 2, 3):
            np.testing.assert_allclose(found[k], wanted[k], rtol=1e-12)


def test_darts_take_the_path_of_the_package(visit):
    page, tree = visit("sum-tree"), SumTree(8)
    tree.set(range(8), [3, 1, 4, 1, 5, 9, 2, 6])
    status = page.locator("#status")
    for fraction in (0.0, 0.42, 0.99):
        page.get_by_label("The dart lands at").fill(str(fraction))
        leaf = tree.find(fraction * tree.total)
        nodes = [(8 + leaf) >> k for k in (3, 2, 1, 0)]
        expect(status).to_contain_text(f"hits item [{leaf}]")
        expect(status).to_contain_text(f"nodes {', '.join(map(str, nodes))}.")
    page.get_by_label("Leaf").fill("5")
    page.get_by_label("Its priority").fill("0")
    expect(status).to_contain_text("nodes 6, 3, 1. The total is 22.")


@pytest.mark.parametrize("width, scheme", [(390, "light"), (1280, "dark")])
@pytest.mark.parametrize("name", ["sum-tree", "alpha-beta"])
def test_everyone_can_use_it(visit, name, width, scheme):
    page = visit(name, width, color_scheme=scheme)
    found = Axe().run(page).response["violations"]
    assert [(fault["id"], [node["html"] for node in fault["nodes"]]) for fault in found] == []
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    for slider in page.get_by_role("slider").all():
        before = page.locator("#picture").inner_html()
        slider.press("ArrowRight")
        assert page.locator("#picture").inner_html() != before
    for button in page.get_by_role("button").all():
        button.press("Enter")
