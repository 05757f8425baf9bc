"""weft-impi-test -serve: the page, in a browser without a screen, and requests that it has to refuse.

The browser is Chromium (CHROMIUM, or chromium in PATH), driven through pipes by its DevTools protocol.
"""

import http.client
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

import stock

BOUND = 120  # seconds, for whatever must happen
TESTER, IMPIRUN, FAKE = (stock.workspace_file(name) for name in ("impi/tester/weft-impi-test", "impi/impirun", "tests/impi/fake_server.py"))
SCRIPTS = stock.workspace_file("impi/tester/scripts")
CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium")


class Page(unittest.TestCase):
    def serve(self, scripts, *command):
        """The tester, and the address of its page."""
        files = [os.path.join(SCRIPTS, name) for name in scripts]
        tester = subprocess.Popen([TESTER, "server", "-patience", "30", "-serve", "0", *files, "--", *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(self.end, tester)
        address = tester.stdout.readline().strip()
        self.assertRegex(address, r"^http://127\.0\.0\.1:\d+/[0-9a-f]{32}/$")
        return tester, address

    def end(self, process):
        process.kill()
        process.communicate()


class Requests(Page):
    def ask(self, address, method, name, host=None):
        port, folder = address.split(":")[2].split("/")[:2]
        connection = http.client.HTTPConnection("127.0.0.1", int(port), timeout=BOUND)
        connection.request(method, name if host else f"/{folder}/{name}")
        answer = connection.getresponse()
        return answer.status, answer.read().decode()

    def test_the_state_and_wrong_requests(self):
        tester, address = self.serve(["2.3.3-none.script"], IMPIRUN)
        status, state = self.ask(address, "GET", "state")
        self.assertEqual(status, 200)
        self.assertEqual([(entry["clause"], entry["state"]) for entry in json.loads(state)["entries"]], [("2.3.3", "waits")])
        for method, name, expected in [("GET", "", 200), ("GET", "page.js", 200), ("GET", "nothing", 404), ("GET", "start", 405), ("POST", "state", 405)]:
            self.assertEqual(self.ask(address, method, name)[0], expected, name)
        self.assertEqual(self.ask(address, "GET", "/state", host=True)[0], 404)
        self.assertEqual(self.ask(address, "POST", "/" + "0" * 32 + "/start", host=True)[0], 404)
        self.assertFalse(json.loads(self.ask(address, "GET", "state")[1])["running"])
        tester.send_signal(signal.SIGTERM)
        self.assertEqual(tester.wait(BOUND), 0)

    def test_a_signal_ends_the_implementation_under_test_too(self):
        tester, address = self.serve(["2.3.3-silent-connection-ends.script"], IMPIRUN)
        self.assertEqual(self.ask(address, "POST", "start")[0], 202)
        self.assertEqual(self.ask(address, "POST", "start")[0], 409)
        tester.send_signal(signal.SIGINT)
        self.assertEqual(tester.wait(BOUND), 0)


class Browser:
    """Chromium at the other end of two pipes: messages end with a zero byte."""

    def __init__(self, folder):
        to_browser, self._to = os.pipe()
        self._from, from_browser = os.pipe()
        # The browser reads from descriptor 3 and writes to 4.
        words = ["/bin/sh", "-c", f'exec "$0" "$@" 3<&{to_browser} 4>&{from_browser}', CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run",
                 "--disable-dev-shm-usage", "--remote-debugging-pipe", f"--user-data-dir={folder}", "about:blank"]
        self._process = subprocess.Popen(words, pass_fds=(to_browser, from_browser), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                         env={**os.environ, "HOME": folder})
        os.close(to_browser)
        os.close(from_browser)
        self._number, self._came, self._session, self._events = 0, b"", None, []

    def open(self, address):
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self.call("Page.enable")
        self.call("Page.navigate", url=address)
        while "Page.loadEventFired" not in self._events:
            self._events.append(self._receive().get("method"))

    def call(self, method, **parameters):
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters, **({"sessionId": self._session} if self._session else {})}
        os.write(self._to, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._receive()
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise RuntimeError(answer["error"])
                return answer["result"]
            self._events.append(answer.get("method"))

    def _receive(self):
        while b"\0" not in self._came:
            more = os.read(self._from, 65536)
            if not more:
                raise EOFError("the browser ended")
            self._came += more
        message, self._came = self._came.split(b"\0", 1)
        return json.loads(message)

    def evaluate(self, expression):
        """Of a promise, its value."""
        result = self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in result:
            raise RuntimeError(result["exceptionDetails"])
        return result["result"].get("value")

    def until(self, condition):
        """Until it holds; the page is asked whenever it changes."""
        self.evaluate(f"""new Promise(resolve => {{
            const look = () => {{ if ({condition}) {{ observer.disconnect(); resolve(true); }} }};
            const observer = new MutationObserver(look);
            observer.observe(document, {{subtree: true, childList: true, attributes: true, characterData: true}});
            look();
        }})""")

    def close(self):
        self._process.kill()
        self._process.wait()
        os.close(self._to)
        os.close(self._from)


@unittest.skipUnless(CHROMIUM, "needs chromium: apt-get install chromium, or set CHROMIUM")
class InABrowser(Page):
    def browse(self, address):
        folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        self.addCleanup(folder.cleanup)
        browser = Browser(folder.name)
        self.addCleanup(browser.close)
        signal.alarm(BOUND)  # its pipes have no limit of their own
        self.addCleanup(signal.alarm, 0)
        browser.open(address)
        browser.until("document.body && document.body.dataset.state === 'ready'")
        return browser

    def test_the_button_runs_all_scripts(self):
        _, address = self.serve(["2.3.3-none.script", "2.3.4-size.script", "2.3.7-fini.script"], IMPIRUN)
        browser = self.browse(address)
        self.assertEqual(browser.evaluate("[...document.querySelectorAll('tr td:first-child')].map(cell => cell.textContent).join()"), "2.3.3,2.3.4,2.3.7")
        self.assertEqual(browser.evaluate("document.getElementById('progress').value"), 0)
        for runs in (1, 2):
            browser.evaluate("document.getElementById('start').click()")
            browser.until(f"document.body.dataset.runs === '{runs}' && document.body.dataset.state === 'done'")
            self.assertEqual(browser.evaluate("document.getElementById('summary').textContent"), "3 of 3 passed")
            self.assertEqual(browser.evaluate("document.getElementById('progress').value"), 3)
            self.assertEqual(browser.evaluate("document.querySelectorAll('tr.passed').length"), 3)

    def test_a_failed_step_is_shown_with_what_came(self):
        _, address = self.serve(["2.3.3-none.script"], sys.executable, FAKE, "miscounts")
        browser = self.browse(address)
        browser.evaluate("document.getElementById('start').click()")
        browser.until("document.body.dataset.state === 'done'")
        text = {name: browser.evaluate(f"document.querySelector('tr.failed .{name}').textContent") for name in ("result", "reason", "trace")}
        self.assertEqual(text["result"], "failed")
        self.assertIn("expected is 4 bytes: 00000001, and this came: 4 bytes: 00000002", text["reason"])
        self.assertIn("to a: AUTH with 4 bytes: 00000001", text["trace"])
        self.assertIn("from a: IMPI with 4 bytes: 00000002", text["trace"])
        self.assertIn("hear a IMPI 1", browser.evaluate("document.querySelector('tr.failed summary').textContent"))


if __name__ == "__main__":
    stock.main()
