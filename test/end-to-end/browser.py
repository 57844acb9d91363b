"""A headless Chromium, for the tests that look at pages."""

import shutil

import pytest


def find_missing():
    """What a browser needs and this machine has not, in words; empty where it has all."""
    missing = [name for name in ("chromium", "chromedriver") if not shutil.which(name)]
    try:
        import selenium  # noqa: F401
    except ImportError:
        missing.append("python3-selenium")
    return missing


def start():
    """Skips the test, with the reason, where there is no browser."""
    if missing := find_missing():
        pytest.skip(f"no browser: {', '.join(missing)} not found; scripts/install-deps.sh --tests installs it")
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium")
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                     "--hide-scrollbars", "--window-size=1500,900"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    return webdriver.Chrome(service=Service(shutil.which("chromedriver")), options=options)
