"A headless Chromium that cannot reach the network, and what it saw: console messages, requests, images."
import json, os, shutil, time
from contextlib import contextmanager
from pathlib import Path
import pytest

BROWSER, DRIVER = shutil.which("chromium") or shutil.which("google-chrome"), shutil.which("chromedriver")
FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
         "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage", "--hide-scrollbars",
         "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE localhost, EXCLUDE 127.0.0.1")
needs_browser = pytest.mark.skipif(not (BROWSER and DRIVER), reason="no Chromium with its driver is installed; tests/install_browser installs one")


@contextmanager
def chromium(folder: Path, width: int = 1280, height: int = 900):
    "A browser with a fresh profile in `folder`."
    from selenium import webdriver
    options = webdriver.ChromeOptions()
    options.binary_location = BROWSER
    for flag in (*FLAGS, f"--user-data-dir={folder/'profile'}"): options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    try:
        resize(driver, width, height)
        driver.get("about:blank")
        driver.get_log("performance")      # the browser's own first page
        yield driver
    finally: driver.quit()


def resize(driver, width: int, height: int):
    "A window whose page is exactly this wide, narrower than a desktop window may be, too."
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride",
                           {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600})


def console_errors(driver) -> list[str]:
    "Messages that a developer would see in red."
    return [entry["message"] for entry in driver.get_log("browser") if entry["level"] == "SEVERE"]


def requested(driver) -> list[str]:
    "Addresses that the page asked for."
    events = [json.loads(entry["message"])["message"] for entry in driver.get_log("performance")]
    return [e["params"]["request"]["url"] for e in events if e["method"] == "Network.requestWillBeSent"]


def broken_images(driver) -> list[str]:
    "Images on the page that show nothing."
    return driver.execute_script("return [...document.images].filter(i => !i.complete || !i.naturalWidth).map(i => i.src.slice(0, 80))")


def wait_for(condition, seconds: float, what: str):
    "The first true value of `condition()`; fails after so many seconds, which only a hanging program needs."
    from selenium.common.exceptions import NoSuchElementException, StaleElementReferenceException
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            if value := condition(): return value
        except (NoSuchElementException, StaleElementReferenceException): pass
        time.sleep(0.2)
    pytest.fail(f"{what} did not happen within {seconds} s")


def screenshot(driver, name: str):
    "Keep a picture for a person to look at, if FA_NB_SCREENSHOTS names a folder."
    if folder := os.environ.get("FA_NB_SCREENSHOTS"):
        Path(folder).mkdir(parents=True, exist_ok=True)
        driver.save_screenshot(str(Path(folder) / f"{name}.png"))
