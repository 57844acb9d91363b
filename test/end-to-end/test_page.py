"""The page of --emit=html in a headless browser: it opens, answers to the pointer and to its costs,
and its numbers are the report's, exactly."""

import json
import random
from decimal import Decimal

import pytest

import browser
from conftest import EXAMPLES

# Enough kinds of programs: pairs, split backwards, chunks, directions, shared weights, neither.
SCHEDULES = [("dualpipe", 4, 10), ("dualpipev", 2, 6), ("zb-h1", 4, 8), ("interleaved", 2, 4),
             ("1f1b", 4, 8), ("chimera", 4, 4), ("zbv", 4, 6), ("v-half", 4, 8), ("gpipe", 3, 5),
             ("dualpipe", 8, 20)]
SETS_PER_SCHEDULE = 5


@pytest.fixture(scope="module")
def driver():
    driver = browser.start()
    yield driver
    driver.quit()


@pytest.fixture
def open_page(driver, tools, tmp_path):
    def open_page(name, ranks, microbatches, *arguments):
        page = tmp_path / "x.html"
        done = tools.opt(EXAMPLES / f"{name}.pipe", f"--ranks={ranks}", f"--microbatches={microbatches}",
                         *arguments, "-o", page)
        assert done.returncode == 0, done.stderr
        driver.get_log("browser")
        driver.get(page.as_uri())
        for _ in range(100):
            if driver.execute_script("return document.documentElement.dataset.ready"):
                break
            driver.execute_async_script("setTimeout(arguments[0], 20)")
        else:
            raise AssertionError(f"the page does not get ready: {driver.get_log('browser')}")
        return page
    yield open_page
    assert driver.get_log("browser") == []


def report(tools, name, ranks, microbatches, *arguments):
    done = tools.opt(EXAMPLES / f"{name}.pipe", f"--ranks={ranks}", f"--microbatches={microbatches}",
                     *arguments, "--emit=report", "--format=json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout, parse_float=Decimal)


def numbers(driver):
    """What the page shows, as a report has it."""
    return driver.execute_script("""
        const text = (id) => document.getElementById(id).textContent;
        const rows = [...document.querySelectorAll("#ranks tr")].map(
            (row) => [...row.cells].map((cell) => cell.textContent));
        return {makespan: text("makespan"), ideal: text("ideal"), bubble: text("bubble"),
                rate: text("rate"), rows};""")


def assert_equal(shown, expected):
    assert Decimal(shown["makespan"]) == expected["makespan"]
    assert Decimal(shown["ideal"]) == expected["ideal"]
    assert Decimal(shown["bubble"]) == expected["bubble"]["max"]
    assert float(shown["rate"]) == pytest.approx(float(expected["bubble"]["rate"]), abs=6e-5)
    columns = [[Decimal(cell) for cell in column] for column in zip(*shown["rows"])]
    assert columns[0] == list(range(expected["ranks"]))
    assert columns[1] == expected["busy"]
    assert columns[2] == expected["bubble"]["per_rank"]
    assert columns[4] == expected["peak_activations"]
    assert columns[5] == expected["weight_queue"]
    assert columns[6] == expected["sends"]


def draw_costs(dice):
    """A page's costs in ticks: of any shape that `--cost` can say."""
    def time(least=1):
        return dice.choice([dice.randint(least, 5) * 1_000_000, dice.randint(max(1, least), 4_000_000)])
    costs = {name: time() for name in ("fwd", "bwd_input", "bwd_weight")}
    costs["bwd"] = dice.choice([None, time()])
    costs["fused"] = dice.choice([None, time()])
    for name in ("transfer", "occupancy", "reduce", "step"):
        costs[name] = dice.choice([0, time(0)])
    costs["separate"] = dice.choice([False, True])
    return costs


@pytest.mark.parametrize("size", SCHEDULES, ids=lambda size: f"{size[0]}-{size[1]}x{size[2]}")
def test_the_second_model_is_the_first(driver, tools, open_page, size):
    dice = random.Random(f"page {size}")
    open_page(*size, "--cost=fwd=1,bwd_input=1.25,transfer=0.5")
    assert_equal(numbers(driver), report(tools, *size, "--cost=fwd=1,bwd_input=1.25,transfer=0.5"))
    for _ in range(SETS_PER_SCHEDULE):
        text = driver.execute_script(
            "dualpipe.setCosts(arguments[0]); return dualpipe.getCostText();", draw_costs(dice))
        assert_equal(numbers(driver), report(tools, *size, f"--cost={text}"))


def test_costs_of_single_stages(driver, tools, open_page):
    costs = "--cost=fwd[1]=2.5,bwd[0]=3,bwd_weight[2]=0.000001,transfer=0.25"
    open_page("dualpipe", 4, 10, costs)
    assert_equal(numbers(driver), report(tools, "dualpipe", 4, 10, costs))
    shown = driver.execute_script("return document.getElementById('command').textContent")
    assert_equal(numbers(driver), report(tools, "dualpipe", 4, 10, shown))


@pytest.mark.parametrize("costs", [
    "node=2,far_transfer=1.5,transfer=0.25,occupancy=0.125,far_occupancy=0.5",
    "node=2,bandwidth=1000,far_bandwidth=300,bytes=70,reduce_bytes=12345,reduce=0.25,transfer=0.1",
    "bandwidth=7,bytes=3,reduce_bytes=11,reduce[1]=2,step[0]=0.5,step=0.25",
    "fused=2.5,forward_done=1.25,backward_done=2",
    "load_input=0.5,load_labels=0.25,transfer=0.1"])
def test_costs_without_a_control(driver, tools, open_page, costs):
    size = ("dualpipe", 4, 10)
    open_page(*size, f"--cost={costs}")
    assert_equal(numbers(driver), report(tools, *size, f"--cost={costs}"))
    text = driver.execute_script("dualpipe.setCosts({fwd: 1300000, transfer: 700000}); return dualpipe.getCostText();")
    assert_equal(numbers(driver), report(tools, *size, f"--cost={text}"))


def test_costs_of_components_are_forgotten_with_their_ops(driver, tools, open_page):
    size = ("zb-h1", 4, 8)
    costs = "--cost=fwd[1.0]=2,bwd_input[0.0]=0.75,transfer=0.25"
    open_page(*size, costs)
    assert_equal(numbers(driver), report(tools, *size, costs))
    text = driver.execute_script("dualpipe.setCosts({bwd_input: 1000001}); return dualpipe.getCostText();")
    assert "fwd[1.0]=2" in text and "bwd_input[0.0]" not in text
    assert_equal(numbers(driver), report(tools, *size, f"--cost={text}"))


def test_a_profile_stays_in_the_costs(driver, tools, open_page, tmp_path):
    """It has times of pairs, which no other option says."""
    profile = tmp_path / "profile.json"
    done = tools.launch(tools.compile("dualpipe", 4, 10), "--model=wait", f"--profile={profile}")
    assert done.returncode == 0, done.stderr
    option = f"{profile},reduce=0.5"
    size = ("dualpipe", 4, 10)
    open_page(*size, f"--cost={option}")
    assert driver.execute_script("return dualpipe.getCostText();") == option
    for given in ({}, {"reduce": 700000, "transfer": 300000, "separate": True}, {"separate": False, "fused": 7000000},
                  {"bwd_input": 1100000}, {"fused": None}):
        text = driver.execute_script("dualpipe.setCosts(arguments[0]); return dualpipe.getCostText();", given)
        assert text.startswith(f"{profile}")
        assert_equal(numbers(driver), report(tools, *size, f"--cost={text}"))


def test_the_critical_path_is_the_report_s(driver, tools, open_page):
    costs = "--cost=fwd=1,bwd_input=1.5,transfer=0.25,reduce=0.5,step=0.25"
    open_page("dualpipe", 4, 10, costs)
    found = driver.execute_script("""
        dualpipe.togglePath();
        dualpipe.drawNow();
        return dualpipe.path.map(([rank, command]) => [
            dualpipe.describe(rank, command), dualpipe.run.ranks[rank].start[command]]);""")
    expected = report(tools, "dualpipe", 4, 10, costs)["critical_path"]
    assert len(found) == sum(share["commands"] for share in expected.values())
    assert found[0][1] == 0
    assert sum(what.startswith("fwd") and " with " not in what for what, _ in found) == expected["fwd"]["commands"]
    assert sum("from rank" in what for what, _ in found) == expected["transfer"]["commands"]
    assert driver.execute_script("return document.getElementById('path').getAttribute('aria-pressed')") == "true"


def test_a_slider_simulates_again(driver, tools, open_page):
    open_page("zb-h1", 4, 8)
    before = numbers(driver)
    driver.execute_script("""
        const slider = document.getElementById("slide-bwd_input");
        slider.value = "2.5";
        slider.dispatchEvent(new Event("input", {bubbles: true}));""")
    after = numbers(driver)
    assert after["makespan"] != before["makespan"]
    assert_equal(after, report(tools, "zb-h1", 4, 8, "--cost=bwd_input=2.5"))
    driver.execute_script("document.getElementById('reset').click()")
    assert numbers(driver) == before


@pytest.mark.parametrize("name,text,message", [
    ("fwd", "0", "fwd: expected a number above 0, below 1000000000"),
    ("fwd", "", "fwd: expected a number above 0, below 1000000000"),
    ("fwd", "2000000000", "fwd: expected a number above 0, below 1000000000"),
    ("transfer", "-1", "transfer: expected a number from 0 on, below 1000000000")])
def test_bad_costs_are_told_and_not_taken(driver, open_page, name, text, message):
    open_page("1f1b", 2, 4)
    before = numbers(driver)
    driver.execute_script("""
        const input = document.getElementById("cost-" + arguments[0]);
        input.value = arguments[1];
        input.dispatchEvent(new Event("input", {bubbles: true}));""", name, text)
    assert driver.execute_script("return document.getElementById('message').textContent") == message
    assert numbers(driver) == before


def test_derived_costs_follow_until_they_are_given(driver, open_page):
    open_page("1f1b", 2, 4, "--cost=bwd_input=1,bwd_weight=1")
    get = "return document.getElementById('cost-bwd').value"
    assert driver.execute_script(get) == "2"
    driver.execute_script("dualpipe.setCosts({bwd_input: 2000000})")
    assert driver.execute_script(get) == "3"
    driver.execute_script("document.getElementById('auto-bwd').click()")
    driver.execute_script("dualpipe.setCosts({bwd_input: 1000000})")
    assert driver.execute_script(get) == "3"


def test_hovering_tells_about_an_op(driver, open_page):
    from selenium.webdriver.common.action_chains import ActionChains

    open_page("1f1b", 2, 4)
    # The backward of micro-batch 0 on rank 0, which waits for that on rank 1.
    x, y = driver.execute_script("""
        const view = dualpipe.view, box = dualpipe.chart.getBoundingClientRect();
        return [view.x(4.5e6) - box.width / 2, view.y(0) + view.barHeight / 2 - box.height / 2];""")
    chart = driver.find_element("id", "chart")
    ActionChains(driver).move_to_element_with_offset(chart, round(x), round(y)).perform()
    tip = driver.find_element("id", "tip")
    assert tip.is_displayed()
    lines = tip.text.splitlines()
    assert lines[0] == "bwd of micro-batch 0, stage 0"
    assert lines[1] == "rank 0, 4 to 6"
    assert "1f1b.pipe:27:" in lines[2]
    assert lines[3] == "starts after bwd of micro-batch 0, stage 1 on rank 1, end 4"
    assert lines[4] == "through the gradient of micro-batch 0 from rank 1 to 0"
    producers = driver.execute_script("return dualpipe.index.getProducers(...dualpipe.hovered).length")
    assert producers == 2
    ActionChains(driver).move_to_element_with_offset(chart, -round(chart.size["width"] / 2) + 4, 0).perform()
    assert not tip.is_displayed()


def test_keys_zoom_move_and_switch(driver, open_page):
    from selenium.webdriver.common.action_chains import ActionChains

    open_page("dualpipe", 4, 10)

    def state():
        return driver.execute_script("""
            const {view} = dualpipe;
            return [view.begin, view.length, dualpipe.selected, dualpipe.showsPath, dualpipe.bySlots,
                    document.documentElement.dataset.theme];""")

    def press(keys):
        ActionChains(driver).send_keys(keys).perform()
        return state()

    begin, length, selected, path, slots, theme = state()
    assert (begin, selected, path, slots, theme) == (0, 0, False, False, "auto")
    assert press("+")[1] == pytest.approx(0.8 * length)
    assert press("\ue014")[0] > press("\ue012\ue012")[0]  # right, then left twice
    assert press("0")[:2] == [0, length]
    assert press("\ue015")[2] == 1  # down
    assert press("c")[3] is True
    assert press("m")[4] is True
    assert press("t")[5] == "dark"
    assert press("t")[5] == "light"


def test_memory_curves_have_the_report_s_peaks(driver, tools, open_page):
    open_page("dualpipe", 4, 10)
    peaks = driver.execute_script("""
        return dualpipe.run.ranks.map((_, rank) =>
            Math.max(...dualpipe.getCurve(rank).map((step) => step.activations)));""")
    assert peaks == report(tools, "dualpipe", 4, 10)["peak_activations"]
    lasts = driver.execute_script("return dualpipe.run.ranks.map((_, rank) => dualpipe.getCurve(rank).at(-1))")
    assert all(last["activations"] == 0 and sum(last["slots"]) == 0 for last in lasts)


def test_the_chart_is_drawn(driver, open_page):
    """Pixels of the colours of forwards and backwards are where these ops are."""
    open_page("1f1b", 2, 4, "--theme=light")
    colours = driver.execute_script("""
        dualpipe.drawNow();
        const {view, chart} = dualpipe, ratio = window.devicePixelRatio;
        const {data} = chart.getContext("2d").getImageData(0, 0, chart.width, chart.height);
        const read = (time, rank) => {
            const at = 4 * (Math.round(view.x(time) * ratio) +
                            Math.round((view.y(rank) + 3) * ratio) * chart.width);
            return [...data.slice(at, at + 3)];
        };
        return [read(0.5e6, 0), read(5e6, 0), read(0.5e6, 1)];""")
    assert colours == [[0xf8, 0xd5, 0x7e], [0x2f, 0x6c, 0xae], [0xf0, 0xf1, 0xf3]]


def test_a_large_page_is_small_and_opens(driver, tools, open_page):
    size = ("dualpipe", 64, 512)
    page = open_page(*size)
    assert page.stat().st_size < 600_000
    assert_equal(numbers(driver), report(tools, *size))
    driver.execute_script("dualpipe.drawNow(); dualpipe.view.zoom(0.01, 700); dualpipe.drawNow();")


def test_a_page_asks_for_nothing(open_page):
    text = open_page("1f1b", 2, 4).read_text()
    assert "default-src 'none'" in text
    assert "http://" not in text and "https://" not in text
    assert " src=" not in text and " href=" not in text
