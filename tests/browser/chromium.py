"""Chromium for tests: one width and one colour scheme at a time, and a record of what a page asks for."""

import base64
import io
import json
from pathlib import Path

from PIL import Image


class Browser:
    """A headless browser.

    Parameters
    ----------
    chromium, chromedriver : the programs; naming both keeps selenium from looking for others.
    """

    def __init__(self, chromium: str, chromedriver: str) -> None:
        from selenium import webdriver

        options = webdriver.ChromeOptions()
        options.binary_location = chromium
        for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--hide-scrollbars"):
            options.add_argument(argument)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        self.driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(chromedriver))
        self.run = self.driver.execute_script

    def open(self, path: Path, width: int = 1000, scheme: str = "light", scripts: bool = True) -> None:
        """Load a file afresh."""
        command = self.driver.execute_cdp_cmd
        self.resize(width)
        command("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]})
        command("Emulation.setScriptExecutionDisabled", {"value": not scripts})
        self.driver.get("about:blank")
        self.errors(), self.requests()
        self.driver.get(path.as_uri())

    def resize(self, width: int) -> None:
        """Give the page another width."""
        size = {"width": width, "height": 1000, "deviceScaleFactor": 1, "mobile": False}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)

    def errors(self) -> list[str]:
        """What the console has said since the last call."""
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def requests(self) -> set[str]:
        """Addresses asked for since the last call, without those that hold their data."""
        events = [json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")]
        sent = [e["params"]["request"]["url"] for e in events if e["method"] == "Network.requestWillBeSent"]
        return {address for address in sent if not address.startswith("data:")}

    def picture(self) -> Image.Image:
        """What is seen, with all that stands out to the right."""
        metrics = self.driver.execute_cdp_cmd("Page.getLayoutMetrics", {})["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": metrics["width"], "height": 1000, "scale": 1}
        answer = self.driver.execute_cdp_cmd(
            "Page.captureScreenshot",
            {"clip": clip, "captureBeyondViewport": metrics["width"] > self.run("return innerWidth")},
        )
        return Image.open(io.BytesIO(base64.b64decode(answer["data"])))

    def press(self, *keys: str) -> None:
        """Type keys into what has the focus."""
        self.driver.switch_to.active_element.send_keys(*keys)

    def violations(self, axe: str) -> list[tuple[str, str, str]]:
        """What the script of axe-core finds that is serious or critical: its rule, its impact, an element."""
        self.run(axe)
        found = self.driver.execute_async_script(
            "const done = arguments[0]; axe.run({ resultTypes: ['violations'] }).then((all) => done(all.violations))"
        )
        told = [(each["id"], each["impact"], each["nodes"][0]["html"][:120]) for each in found]
        return [each for each in told if each[1] in ("serious", "critical")]
