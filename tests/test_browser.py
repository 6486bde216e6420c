"What people look at, in a real browser: the report, and the explore notebook in JupyterLab."
import os, re, signal, subprocess, threading
from pathlib import Path
import pytest
from browser import broken_images, chromium, console_errors, needs_browser, requested, resize, screenshot, wait_for
from conftest import command

pytestmark = needs_browser
RUN = ("run", "--data", "digits", "--epochs", "6", "--width", "32", "--threads", "1", "--quiet", "--out", "runs")


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    "A folder with a `runs` folder in it: backpropagation, DFA and DFA with a penalty."
    folder = tmp_path_factory.mktemp("browser")
    for settings in (("--rule", "bp"), ("--rule", "dfa"), ("--rule", "dfa", "--penalty", "0.01")):
        subprocess.run(command(*RUN, *settings), cwd=folder, check=True)
    return folder


@pytest.fixture(scope="module")
def report(runs):
    "The report on these runs, as the command makes it."
    done = subprocess.run(command("report"), cwd=runs, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return Path(runs / done.stdout.strip().removeprefix("Report: "))


class Lab:
    "`fa_nb lab` in a folder, until the test is over."
    def __init__(self, folder: Path):
        environment = {**os.environ, "HOME": str(folder / "home"), "JUPYTER_CONFIG_DIR": str(folder / "home" / "config")}
        self.process = subprocess.Popen(command("lab", "--no-browser"), cwd=folder, env=environment, stderr=subprocess.PIPE,
                                        text=True, start_new_session=True)
        self.said, self.address, ready = [], None, threading.Event()
        def listen():
            for line in self.process.stderr:
                self.said.append(line)
                found = re.search(r"http://(?:localhost|127\.0\.0\.1):\S+token=\w+", line)
                if found and not self.address:
                    self.address = found[0]
                    ready.set()
            ready.set()
        threading.Thread(target=listen, daemon=True).start()
        assert ready.wait(120) and self.address, "".join(self.said)

    def close(self):
        os.killpg(self.process.pid, signal.SIGTERM)
        self.process.wait(timeout=60)


@pytest.fixture
def lab(runs):
    lab = Lab(runs)
    yield lab
    lab.close()


def choose(driver, menu: str, entry: str):
    "An entry of JupyterLab's menu bar."
    for kind, text in (("lm-MenuBar-itemLabel", menu), ("lm-Menu-itemLabel", entry)):
        item = wait_for(lambda: driver.find_element("xpath", f"//div[contains(@class, '{kind}') and normalize-space()='{text}']"), 60, f"menu {text}")
        driver.execute_script("arguments[0].scrollIntoView()", item)
        item.click()


PIXELS = """const done = arguments[1];
fetch(arguments[0].src).then(r => r.arrayBuffer()).then(b => crypto.subtle.digest('SHA-256', b))
  .then(d => done([...new Uint8Array(d)].join(' '))).catch(() => done(null))"""


def test_explore_notebook_in_jupyterlab(lab, runs, tmp_path):
    with chromium(tmp_path, width=1400, height=4200) as driver:
        driver.get(lab.address)
        wait_for(lambda: driver.find_element("css selector", ".jp-Notebook .jp-Cell"), 120, "opening the notebook")
        wait_for(lambda: "| Idle" in driver.find_element("css selector", "#jp-main-statusbar").text
                 and not driver.find_elements("css selector", ".jp-Spinner"), 120, "starting the kernel")
        choose(driver, "Run", "Run All Cells")
        button = lambda text: driver.find_element("xpath", f"//button[contains(@class, 'jupyter-button') and normalize-space()='{text}']")
        wait_for(lambda: button("Train"), 120, "running all cells")
        first, live = wait_for(lambda: (lambda found: found if len(found) == 2 else None)(driver.find_elements("css selector", "img.widget-image")), 60, "two pictures")
        pixels = lambda image: driver.execute_async_script(PIXELS, image)
        screenshot(driver, "lab")

        def changes(what, act):
            before = wait_for(lambda: pixels(first), 30, "a picture")
            act()
            wait_for(lambda: pixels(first) not in (None, before), 60, f"a new picture after {what}")

        changes("the linear axis", lambda: button("linear").click())
        changes("another layer", lambda: driver.find_element("css selector", ".widget-slider .noUi-handle").send_keys("\ue012"))   # arrow left
        from selenium.webdriver.support.ui import Select
        metric = next(s for s in driver.find_elements("css selector", "select:not([multiple])") if "cosine" in s.text)
        changes("another metric", lambda: Select(metric).select_by_visible_text("accuracy on the whole test set"))

        seen = {wait_for(lambda: pixels(live), 30, "the empty axes")}
        button("Train").click()
        wait_for(lambda: seen.add(pixels(live)) or len(seen - {None}) >= 4, 120, "curves that grow")
        wait_for(lambda: "finished: test accuracy" in driver.find_element("css selector", ".jp-Notebook").text, 120, "the end of the training")
        screenshot(driver, "lab-trained")

        assert not driver.find_elements("css selector", "[data-mime-type='application/vnd.jupyter.error'], [data-mime-type='application/vnd.jupyter.stderr']")
        assert not broken_images(driver)
        assert not console_errors(driver)
        assert not [url for url in requested(driver) if not re.match(r"(http|ws)://(localhost|127\.0\.0\.1):|data:|blob:", url)]


@pytest.mark.parametrize("width", [1280, 390], ids=["desktop", "phone"])
def test_report(report, tmp_path, width):
    with chromium(tmp_path, width=width) as driver:
        driver.get(report.as_uri())
        assert driver.title == "Report on runs"
        page = driver.find_element("tag name", "body").text
        for heading in ("What was run", "Accuracy", "Can these numbers be believed?", "Figures", "Layer by layer", "Every run"): assert heading in page
        assert len(driver.find_elements("css selector", "figure img")) >= 4 and not broken_images(driver)
        assert not re.search(r"Traceback|\bnan\b|Error:", page)
        assert driver.execute_script("return document.documentElement.scrollWidth") <= width        # nothing sticks out sideways
        for link in driver.find_elements("css selector", "a[href]"):
            if not link.get_attribute("href").startswith(report.as_uri()): assert Path(link.get_attribute("href").removeprefix("file://")).is_file()
        assert not console_errors(driver)
        assert all(url.startswith(("file:", "data:")) for url in requested(driver))
        resize(driver, width, driver.execute_script("return document.documentElement.scrollHeight"))
        screenshot(driver, f"report-{width}")


def test_the_browser_would_notice(tmp_path):
    page = tmp_path / "bad.html"
    page.write_text("<img src='missing.png'><script>throw new Error('oh')</script><script src='https://example.org/require.js'></script>")
    with chromium(tmp_path) as driver:
        driver.get(page.as_uri())
        assert len(broken_images(driver)) == 1
        assert any("oh" in message for message in console_errors(driver))
        assert "https://example.org/require.js" in requested(driver)
