"""The site's explorables in Chromium: the package's numbers, and a page that everyone can use."""

import re
from pathlib import Path

import numpy as np
import pytest
from pages import served
from PIL import Image
from playwright.sync_api import expect

from per_tutorial.cliffwalk.environment import make_memory, true_values
from per_tutorial.cliffwalk.learner import CliffwalkLearner
from per_tutorial.notebook.style import COLORS, SAMPLER_COLORS
from per_tutorial.replay.random_streams import RandomStreams
from per_tutorial.replay.samplers.proportional import ProportionalSampler
from per_tutorial.replay.trees import SumTree
from per_tutorial.statistics import estimate
from per_tutorial.worlds.knobs import Knobs
from per_tutorial.worlds.learning import CURVE
from per_tutorial.worlds.results import LENGTHS, NOISES, gains, judged, load

pytestmark = pytest.mark.browser

SITE = Path(__file__).parents[2] / "site"
NAMES = ("sum-tree", "alpha-beta", "cliffwalk", "when-map")
MAP_METHODS = {"per": "PER", "rank": "PER by rank", "relo": "ReLo"}
PHONE, DESKTOP = {"width": 390, "height": 844}, {"width": 1280, "height": 900}


@pytest.fixture(scope="module")
def address():
    """The address of a server of the site's sources."""
    with served(SITE) as address:
        yield address


@pytest.fixture
def visit(browser, address):
    """Opens an explorable; at the end, nothing may have failed or come from elsewhere."""
    contexts, faults = [], []

    def visit(name, viewport=DESKTOP, **settings):
        settings = {"viewport": viewport, "reduced_motion": "reduce"} | settings
        contexts.append(browser.new_context(**settings))
        page = contexts[-1].new_page()
        page.on("console", lambda message: faults.append(message.text))
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("requestfailed", lambda request: faults.append(f"failed: {request.url}"))
        page.on("request", note_foreign)
        page.goto(f"{address}/explorables/{name}/index.html")
        if settings.get("java_script_enabled", True):
            page.wait_for_selector("#app svg")
        return page

    def note_foreign(request):
        if not request.url.startswith((address, "data:")):
            faults.append(f"fetched from elsewhere: {request.url}")

    yield visit
    for context in contexts:
        context.close()
    assert faults == []


@pytest.fixture
def compute(visit):
    """Runs JavaScript with a page's module in `m` and the random numbers in `r`."""

    def compute(name, body, argument):
        page = visit(name)
        return page.evaluate(
            f"""async (given) => {{
                const m = await import("./{name}.js");
                const r = await import("../random.js");
                {body}
            }}""",
            argument,
        )

    return compute


# --- the package's numbers -------------------------------------------------------------------


def test_the_random_numbers_are_those_of_the_package(compute):
    states = [0, 1, 2**63 + 12345, 2**64 - 1]
    ours = compute(
        "sum-tree",
        """return given.map((state) => {
            const next = r.stream(state);
            return Array.from({length: 50}, next);
        });""",
        [str(state) for state in states],
    )
    streams = RandomStreams([0] * len(states), "replay")
    streams.states[:] = states
    np.testing.assert_array_equal(ours, streams.uniform(50))


def test_a_tree_finds_what_the_package_finds(compute):
    rng = np.random.default_rng(0)
    cases, expected = [], []
    for capacity in range(1, 17):
        for empty in (0.0, 0.4, 0.9):  # the share of leaves that are zero
            values = rng.choice(
                [rng.random(capacity) * 20, np.zeros(capacity)], p=[1 - empty, empty]
            )
            values[rng.random(capacity) < empty] = 0
            values[rng.integers(capacity)] = 0.1
            tree = SumTree(capacity)
            tree.set(range(capacity), values)
            # Anywhere, and at the edges: where a strip begins, and the last number below the total.
            prefixes = rng.random(40) * tree.total
            ends = np.cumsum(values)
            ends = np.concatenate([[0.0], ends, np.nextafter(ends, 0)])
            prefixes = np.concatenate([prefixes, ends[ends < tree.total]])
            prefixes = np.append(prefixes, np.nextafter(tree.total, 0))
            cases.append([values.tolist(), prefixes.tolist()])
            found = tree.find(prefixes)
            expected.append([tree.nodes.tolist(), found.tolist(), (tree.leaves + found).tolist()])
    ours = compute(
        "sum-tree",
        """return given.map(([values, prefixes]) => {
            const tree = new m.SumTree(values.length);
            values.forEach((value, leaf) => tree.set(leaf, value));
            const lastNode = (prefix) => {
                const step = tree.walk(prefix).at(-1);
                return step ? 2 * step.node + (step.goesRight ? 1 : 0) : 1;
            };
            const found = prefixes.map((prefix) => tree.find(prefix));
            return [Array.from(tree.nodes), found, prefixes.map(lastNode)];
        });""",
        cases,
    )
    assert ours == expected
    assert sum(len(prefixes) for _, prefixes in cases) > 2000


def test_a_tree_refuses_what_the_package_refuses(compute):
    refused = compute(
        "sum-tree",
        """const tree = new m.SumTree(3);
        tree.set(1, 2);
        const tries = [
            () => tree.find(2), () => tree.find(-1), () => tree.find(NaN), () => tree.set(3, 1),
            () => tree.set(0, -1), () => tree.set(0, NaN), () => new m.SumTree(0),
            () => new m.SumTree(2).find(0),
        ];
        return tries.map((attempt) => {
            try { attempt(); } catch (error) { return error.name; }
        });""",
        None,
    )
    assert refused == ["RangeError"] * len(refused)


@pytest.mark.parametrize("normalize", ["batch", "buffer", "none"])
def test_probabilities_draws_and_weights_are_those_of_the_package(compute, normalize):
    rng = np.random.default_rng(1)
    cases, expected = [], []
    for size in (1, 5, 12, 50):
        for alpha in (0.0, 0.3, 0.6, 1.0):
            for beta in (0.0, 0.4, 1.0):
                td_errors = rng.normal(size=(1, size)) * 3
                td_errors[0, rng.integers(size)] = 0.0
                sampler = ProportionalSampler(
                    size, [int(rng.integers(100))], alpha=alpha, normalize=normalize
                )
                slots, sizes = np.arange(size)[None], np.array([size])
                sampler.add(slots, sizes)
                sampler.update(slots, td_errors)
                state = str(sampler.streams.states[0])
                cases.append([td_errors[0].tolist(), alpha, beta, state, normalize])
                P = sampler.probabilities(slots, sizes)[0]
                drawn, weights = sampler.sample(32, sizes, beta)
                worth = weights.sum() ** 2 / (weights**2).sum()
                expected.append((P, drawn[0], weights[0], worth))
    ours = compute(
        "alpha-beta",
        """return given.map(([errors, alpha, beta, state, normalize]) => {
            const tree = m.priorityTree(errors, alpha);
            const P = m.probabilities(tree);
            const drawn = m.sample(tree, 32, r.stream(state));
            const weights = m.importanceWeights(P, drawn, beta, normalize);
            return [P, drawn, weights, m.effectiveSize(weights)];
        });""",
        cases,
    )
    for (P, drawn, weights, worth), theirs in zip(ours, expected, strict=True):
        np.testing.assert_allclose(P, theirs[0], rtol=1e-12)
        np.testing.assert_array_equal(drawn, theirs[1])
        np.testing.assert_allclose(weights, theirs[2], rtol=1e-12)
        assert worth == pytest.approx(theirs[3], rel=1e-12)


def test_the_walk_and_its_memory_are_those_of_the_package(compute):
    lengths = range(2, 11)
    ours = compute(
        "cliffwalk",
        """return given.map((n) => [
            Array.from(m.trueValues(n)),
            m.makeMemory(n, r.stream(n)).map((t) => [t.state, t.action, t.reward, t.next]),
        ]);""",
        list(lengths),
    )
    for n, (truth, memory) in zip(lengths, ours, strict=True):
        np.testing.assert_allclose(truth, true_values(n).ravel(), rtol=1e-14)
        theirs = np.column_stack(make_memory(n, np.random.default_rng(0)))
        assert sorted(map(tuple, memory)) == sorted(map(tuple, theirs.tolist()))
        assert memory != sorted(memory)  # in random order


@pytest.mark.parametrize("sampler", ["uniform", "greedy", "proportional", "oracle"])
def test_a_race_is_the_packages_update_by_update(compute, sampler):
    cases, expected = [], []
    for n in (2, 3, 5, 8):
        for alpha in (0.0, 0.7, 1.0) if sampler == "proportional" else (0.7,):
            for seed in range(3):
                learner = CliffwalkLearner(n, sampler, alpha=alpha, seed=seed)
                states, actions, rewards, next_states = learner.memory
                rows = np.column_stack([states, actions, rewards, next_states]).tolist()
                # A table has no use for the constant feature, the last column.
                q = learner.q.ravel().tolist()
                cases.append([n, sampler, alpha, rows, q, str(learner._choice.random[0])])
                replayed = []
                while not learner.converged:
                    learner.run(1)
                    replayed.append(learner.last)
                expected.append((learner.updates, replayed, learner.q.ravel(), learner.loss))
    ours = compute(
        "cliffwalk",
        """return given.map(([n, sampler, alpha, rows, q, state]) => {
            const memory = rows.map(
                ([state, action, reward, next]) => ({state, action, reward, next}));
            const settings = {n, sampler, alpha, memory, q, random: r.stream(state)};
            const learner = new m.Learner(settings);
            const atOnce = new m.Learner({...settings, random: r.stream(state)});
            const replayed = [];
            while (learner.run(1)) replayed.push(learner.last);
            atOnce.run(Infinity);
            return [learner.updates, replayed, Array.from(learner.q), learner.loss, atOnce.updates];
        });""",
        cases,
    )
    for (updates, replayed, q, loss, at_once), theirs in zip(ours, expected, strict=True):
        assert updates == at_once == theirs[0]
        assert replayed == theirs[1]
        np.testing.assert_allclose(q, theirs[2], rtol=1e-9, atol=1e-12)
        assert loss == pytest.approx(theirs[3], rel=1e-9)


def test_symbols_have_the_colours_of_the_notebooks():
    style = (SITE / "explorables" / "style.css").read_text(encoding="utf-8")
    light = dict(re.findall(r"--([\w-]+): light-dark\((#\w{6}),", style))
    colors = COLORS | SAMPLER_COLORS
    shared = {name.replace("_", "-"): color for name, color in colors.items()}
    same = shared.keys() & light.keys()
    assert len(same) >= 12
    assert {name: light[name] for name in same} == {name: shared[name].lower() for name in same}


# --- what a reader does ----------------------------------------------------------------------


def status(page):
    return page.locator("#status")


def test_leaves_answer_to_the_keyboard(visit):
    page = visit("sum-tree")
    page.get_by_role("slider", name="Leaf 0").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    expect(page.get_by_role("slider", name="Leaf 2")).to_be_focused()
    page.keyboard.press("ArrowUp")
    expect(page.get_by_role("slider", name="Leaf 2")).to_have_attribute("aria-valuenow", "5")
    expect(status(page)).to_contain_text("nodes 5, 2, 1. The total is 32.")
    page.keyboard.press("End")
    expect(page.get_by_role("slider", name="Leaf 7")).to_be_focused()
    for _ in range(8):
        page.keyboard.press("ArrowDown")  # from 6, and no further than 0
    expect(status(page)).to_contain_text("Leaf [7] is 0 now")
    expect(page.get_by_label("Priority of leaf [7]")).to_have_value("0")


def test_the_dart_slider_names_the_path_that_the_package_takes(visit):
    page = visit("sum-tree")
    tree = SumTree(8)
    tree.set(range(8), [3, 1, 4, 1, 5, 9, 2, 6])
    for fraction in (0.0, 0.3, 0.42, 0.9, 0.99):
        page.get_by_label("The dart lands at").fill(str(fraction))
        item = tree.find(fraction * tree.total)
        node = tree.leaves + item
        path = ", ".join(str(node >> level) for level in (3, 2, 1, 0))
        expect(status(page)).to_contain_text(f"hits item [{item}]")
        expect(status(page)).to_contain_text(f"nodes {path}.")
        expect(page.locator("#steps li")).to_have_count(3)


@pytest.mark.parametrize("capacity", [2, 5, 9, 16])
def test_darts_hit_leaves_that_are_there(visit, capacity):
    page = visit("sum-tree", PHONE, has_touch=True)
    page.get_by_label("Leaves", exact=False).last.fill(str(capacity))
    expect(page.get_by_role("slider", name=re.compile(r"Leaf \d+"))).to_have_count(capacity)
    page.get_by_role("button", name="Throw 100").tap()
    expect(status(page)).to_contain_text("100 darts so far")
    page.get_by_role("button", name="Throw a dart").tap()
    item = int(re.search(r"item \[(\d+)\]", status(page).text_content())[1])
    assert item < capacity
    expect(page.locator(".picture")).to_contain_text("101 hits so far")


def test_a_tree_of_zeros_has_nothing_to_hit(visit):
    page = visit("sum-tree")
    page.get_by_label("Leaves", exact=False).last.fill("2")
    for leaf in ("Leaf 0", "Leaf 1"):
        page.get_by_role("slider", name=leaf).click()
        page.get_by_label("Priority of leaf").fill("0")
    expect(status(page)).to_contain_text("there is nothing to hit")
    expect(page.get_by_role("button", name="Throw a dart")).to_be_disabled()
    page.get_by_label("The dart lands at").fill("0.5")
    page.get_by_label("Priority of leaf").fill("4")
    page.get_by_role("button", name="Throw a dart").click()
    expect(status(page)).to_contain_text("hits item [1]")


def test_the_walk_is_shown_step_by_step_unless_the_reader_wants_less_motion(visit):
    page = visit("sum-tree", reduced_motion="no-preference")
    page.get_by_role("button", name="Throw a dart").click()
    assert page.evaluate("document.getAnimations().length") > 0
    expect(status(page)).to_contain_text("hits item", timeout=10_000)
    calm = visit("sum-tree")
    calm.get_by_role("button", name="Throw a dart").click()
    assert calm.evaluate("document.getAnimations().length") == 0
    expect(status(calm)).to_contain_text("hits item")


def test_a_click_on_the_line_throws_there(visit):
    page = visit("sum-tree")
    line = page.locator(".target").bounding_box()
    page.mouse.click(line["x"] + 0.5 * line["width"], line["y"] + line["height"] - 10)
    expect(status(page)).to_contain_text("hits item [5]")  # 15.5 of 31: from 14 to 23


def test_alpha_and_beta_move_probabilities_and_weights(visit):
    page = visit("alpha-beta")
    page.get_by_label(re.compile("^α")).fill("0")
    expect(status(page)).to_contain_text("the same probability, 8.3 %")
    expect(status(page)).to_contain_text(
        "worth 32 equally weighted ones, and its mean weight is 1."
    )
    page.get_by_label(re.compile("^α")).fill("1")
    page.get_by_role("button", name="one without error").click()
    page.get_by_label(re.compile("^β")).fill("1")
    page.get_by_label("the minibatch’s largest").check()
    first = float(re.search(r"mean weight is ([\d.]+)\.", status(page).text_content())[1])
    page.get_by_label("the memory’s largest").check()
    second = float(re.search(r"mean weight is ([\de.-]+)\.", status(page).text_content())[1])
    assert second < 1e-4 < 0.3 < first


def test_surprises_answer_to_keyboard_and_mouse(visit):
    page = visit("alpha-beta")
    page.get_by_role("slider", name="Transition 0,").focus()
    page.keyboard.press("End")
    page.keyboard.press("PageUp")
    last = page.get_by_role("slider", name="Transition 11,")
    expect(last).to_be_focused()
    expect(last).to_have_attribute("aria-valuenow", "0.55")
    page.get_by_role("slider", name="Transition 4,").click()
    page.get_by_label("|δ| of transition 4").fill("5")
    expect(status(page)).to_contain_text("Transition 4 is drawn most often")
    page.get_by_role("button", name="100 minibatches").click()
    expect(page.locator(".picture")).to_contain_text("3,232 draws")


def test_ten_races_have_the_medians_of_the_package(visit):
    page = visit("cliffwalk")
    page.get_by_label("States").fill("6")
    page.get_by_role("button", name="Ten races").click()
    expect(status(page)).to_contain_text("Medians of 10 races", timeout=30_000)
    cells = page.locator("#results td:last-child").all_text_contents()
    medians = [float(cell.replace(",", "")) for cell in cells]
    for sampler, own in zip(("uniform", "greedy", "proportional", "oracle"), medians, strict=True):
        theirs = np.median([CliffwalkLearner(6, sampler, seed=seed).run() for seed in range(50)])
        assert 0.6 < own / theirs < 1.6, sampler


def test_a_race_runs_pauses_and_goes_to_the_end(visit):
    page = visit("cliffwalk", reduced_motion="no-preference")
    page.get_by_role("button", name="Start the race").press("Enter")
    expect(page.locator(".lane.uniform p")).not_to_have_text("0 updates")
    page.get_by_role("button", name="Pause").press("Enter")
    expect(status(page)).to_contain_text("Paused after")
    before = page.locator(".lane.uniform p").text_content()
    page.wait_for_timeout(200)
    assert page.locator(".lane.uniform p").text_content() == before
    page.get_by_role("button", name="Go on").press("Enter")
    page.get_by_role("button", name="To the end").press("Enter")
    expect(status(page)).to_contain_text("Updates needed: Oracle 311, Greedy 695")
    page.get_by_role("button", name="Another race").click()
    expect(page.locator("#races")).to_have_text("of 1")


def test_a_calm_race_is_over_at_once(visit):
    page = visit("cliffwalk")
    page.get_by_role("button", name="Start the race").click()
    expect(status(page)).to_contain_text("Updates needed")


def world(page, n, noise):
    """The button of a world on the map."""
    return page.get_by_role("button", name=f"one step in {Knobs(n).rarity} pays, noise {noise:g}:")


def put(number):
    """A gain as the page writes it."""
    return f"{number:+.2f}".replace("-", "−")


def test_every_world_of_the_map_has_its_gain_and_its_verdict(visit):
    page, cells = visit("when-map"), load("map")["cells"]
    verdicts = judged(cells, list(MAP_METHODS))
    for method, title in MAP_METHODS.items():
        page.get_by_role("radio", name=title, exact=True).check()
        shown = page.locator("#map button").evaluate_all(
            "all => all.map(b => [b.ariaLabel, b.textContent, b.classList[1] ?? ''])"
        )
        expected = []
        for n in reversed(LENGTHS):
            for noise in NOISES:
                gain, verdict = verdicts[f"map-n{n}-noise{noise}-", method]
                gain = put(gain.value)
                place = f"one step in {Knobs(n).rarity} pays, noise {noise:g}"
                label = f"{place}: gain {gain}, {verdict}"
                frame = {"helps": "told", "hurts": "told", "borderline": "borderline"}
                expected.append([label, gain, frame.get(verdict, "")])
        assert shown == expected


@pytest.mark.parametrize(("n", "noise"), [(8, 0.0), (3, 0.1), (6, 1.0)])
def test_a_world_shows_its_interval_its_rates_and_its_curves(visit, n, noise):
    page, cell = visit("when-map"), load("map")["cells"][f"map-n{n}-noise{noise}-"]
    world(page, n, noise).click()
    gain, low, high = (put(number) for number in estimate(gains(cell, "per")))
    expect(status(page)).to_contain_text(f"a gain of {gain} [{low}, {high}]")
    for found, text in zip(
        cell.values(), page.locator("#legend li").all_text_contents(), strict=True
    ):
        rate = text.rpartition(" ")[2].split("/")
        assert float(rate[0]) / float((*rate, 1)[1]) == found["rate"]
    heights = page.locator("#curves .axis").evaluate_all(
        "all => all.map(l => +l.getAttribute('y1'))"
    )
    for method in ("uniform", *MAP_METHODS):
        line = page.locator(f"#curves .{method} path").get_attribute("d")
        drawn = np.array([point.split() for point in line[1:].split("L")], dtype=float)
        errors = 0.6 * (heights[0] - drawn[:, 1]) / (heights[0] - heights[-1])
        assert len(errors) == (CURVE if noise else 13)  # or up to a fifth of the training
        np.testing.assert_allclose(errors, cell[method]["curve"][: len(errors)], atol=5e-4)


def test_the_map_answers_to_the_keyboard(visit):
    page = visit("when-map")
    world(page, 8, 0.5).focus()
    for key in ("ArrowUp", "ArrowRight", "ArrowRight", "ArrowDown"):  # two of them at an edge
        page.keyboard.press(key)
    expect(world(page, 7, 1.0)).to_be_focused()
    expect(world(page, 7, 1.0)).to_have_attribute("aria-pressed", "true")
    expect(page.get_by_role("slider", name="One step pays")).to_have_value("4")
    expect(status(page)).to_contain_text("one step in 254 pays and the noise is 1, PER and uniform")
    page.keyboard.press("Home")
    page.keyboard.press("PageDown")
    expect(world(page, 3, 0.0)).to_be_focused()


def test_sliders_and_taps_choose_a_world_as_well(visit):
    page = visit("when-map", PHONE, has_touch=True)
    page.get_by_role("slider", name="One step pays").fill("0")
    page.get_by_role("slider", name="Noise").fill("0")
    expect(world(page, 3, 0.0)).to_have_attribute("aria-pressed", "true")
    world(page, 5, 0.25).tap()
    page.get_by_role("radio", name="ReLo").tap()
    expect(status(page)).to_contain_text(
        "Where one step in 62 pays and the noise is 0.25, ReLo hurts"
    )
    expect(page.locator("#map [aria-pressed=true]")).to_have_count(1)
    expect(page.locator("#map [tabindex='0']")).to_have_count(1)


def test_on_the_logarithmic_scale_a_curve_ends_where_it_leaves_the_chart(visit):
    page = visit("when-map")
    page.get_by_role("radio", name="logarithmic").check()
    points = "path => path.getAttribute('d').split('L').length"
    path = page.locator("#curves .uniform path")
    assert path.evaluate(points) == CURVE
    world(page, 8, 0.0).click()
    curve = np.array(load("map")["cells"]["map-n8-noise0.0-"]["uniform"]["curve"])
    assert path.evaluate(points) == np.flatnonzero(curve < 0.001)[0] + 1
    expect(page.locator("#curves")).to_contain_text("its first 20 %")


# --- everyone --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("viewport", "scheme"),
    [
        pytest.param(PHONE, "light", id="phone-light"),
        pytest.param(DESKTOP, "dark", id="desktop-dark"),
        pytest.param(PHONE, "dark", id="phone-dark", marks=pytest.mark.exhaustive),
        pytest.param(DESKTOP, "light", id="desktop-light", marks=pytest.mark.exhaustive),
    ],
)
@pytest.mark.parametrize("name", NAMES)
def test_axe_finds_no_fault(visit, name, viewport, scheme):
    from axe_playwright_python.sync_playwright import Axe

    page = visit(name, viewport, color_scheme=scheme)
    found = Axe().run(page).response["violations"]
    assert [(fault["id"], [node["html"] for node in fault["nodes"]]) for fault in found] == []
    wide = page.evaluate("document.documentElement.scrollWidth - innerWidth")
    assert wide <= 0


@pytest.mark.parametrize("name", NAMES)
def test_the_theme_can_be_chosen(visit, name):
    page = visit(name)
    ground = "getComputedStyle(document.documentElement).backgroundColor"
    light = page.evaluate(ground)
    page.evaluate("document.documentElement.dataset.theme = 'dark'")
    assert page.evaluate(ground) != light
    dark = visit(name, color_scheme="dark")
    assert dark.evaluate(ground) == page.evaluate(ground)
    dark.evaluate("document.documentElement.dataset.theme = 'light'")
    assert dark.evaluate(ground) == light


@pytest.mark.parametrize("name", NAMES)
def test_every_control_shows_that_it_has_the_focus(visit, name):
    page = visit(name)
    seen = 0
    while seen < 40:
        page.keyboard.press("Tab")
        shown = page.evaluate("""() => {
            const element = document.activeElement;
            if (!element || element === document.body) return null;
            const ring = element.querySelector?.(".ring");
            if (ring) return getComputedStyle(ring).opacity === "1";
            const {outlineStyle, outlineWidth} = getComputedStyle(element);
            return outlineStyle !== "none" && parseFloat(outlineWidth) >= 2;
        }""")
        if shown is None:
            break
        assert shown, page.evaluate("document.activeElement.outerHTML")
        seen += 1
    assert 5 <= seen < 40  # and the focus is never caught


@pytest.mark.parametrize("name", NAMES)
def test_without_scripts_there_is_a_picture(visit, name):
    page = visit(name, java_script_enabled=False)
    picture = page.locator(".still img")
    expect(picture).to_be_visible()
    assert len(picture.get_attribute("alt")) > 80
    expect(page.locator("#app")).to_be_hidden()
    width, height = Image.open(SITE / "explorables" / name / "picture.png").size
    declared = [int(picture.get_attribute(side)) for side in ("width", "height")]
    assert width / height == pytest.approx(declared[0] / declared[1], rel=0.01)


def test_the_picture_of_the_race_tells_what_the_race_gives(visit):
    page = visit("cliffwalk")
    page.get_by_role("button", name="To the end").click()
    numbers = re.findall(r"[A-Z]\w+ (\d[\d,]*\d)", status(page).text_content())
    alt = re.search(
        r'alt="([^"]*)"', (SITE / "explorables/cliffwalk/index.html").read_text(encoding="utf-8")
    )[1]
    assert len(numbers) == 4
    assert all(f"after {number}" in alt for number in numbers)


def test_the_words_about_the_map_are_true(visit):
    page = visit("when-map")
    text = (SITE / "explorables/when-map/index.html").read_text(encoding="utf-8")
    alt = re.search(r'alt="([^"]*)"', text)[1]
    framed = page.locator("#map .told").evaluate_all("all => all.map(b => b.ariaLabel)")
    assert f" {len(framed)} worlds have a frame" in alt
    assert {re.search(r"noise (.*?):", label)[1] for label in framed} == {"0.1", "0.25", "0.5"}
    assert alt.count(re.search(r"a gain of \S+", status(page).text_content())[0]) == 1
    texts = page.locator("#map button").all_text_contents()
    shown = [float(text.replace("−", "-")) for text in texts]
    assert max(shown) == shown[0]  # the largest gain is in the corner without noise,
    expect(world(page, 8, 0.0)).not_to_have_class(re.compile("told"))  # without a frame
    ends = {
        method: found["curve"][-1]
        for method, found in load("map")["cells"]["map-n8-noise0.5-"].items()
    }
    assert (min(ends, key=ends.get), max(ends, key=ends.get)) == ("rank", "relo")


@pytest.mark.parametrize("name", NAMES)
def test_inside_another_page_it_leaves_out_what_that_page_says(visit, address, name):
    page = visit(name, PHONE)
    page.set_content(f'<iframe src="{address}/explorables/{name}/index.html" width="360"></iframe>')
    inner = page.frame_locator("iframe")
    expect(inner.locator("#app svg").first).to_be_visible()
    expect(inner.locator(".back")).to_be_hidden()
    frame = page.frames[1]
    assert frame.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0


@pytest.mark.parametrize("name", NAMES)
def test_it_leads_back_to_its_notebook(visit, name):
    page = visit(name)
    target = page.locator(".back a").get_attribute("href")
    notebook = re.fullmatch(r"\.\./\.\./notebooks/(\w+)\.html", target)[1]
    assert (SITE.parent / "notebooks" / f"{notebook}.ipynb").exists()
