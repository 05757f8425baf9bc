"""What ./install leaves behind: everything that its documents point at is there, and it works from where it is."""

import glob
import os
import re
import subprocess
import tempfile

import stock

LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


def anchors(path):
    """The names by which a document's headings are reached, as GitHub makes them."""
    with open(path) as file:
        headings = re.findall(r"^#+ +(.*)$", file.read(), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


class Installation(stock.StockTest):

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.folder = tempfile.TemporaryDirectory()
        cls.prefix = os.path.join(cls.folder.name, "prefix")
        os.mkdir(cls.prefix)
        stage = os.path.dirname(os.path.dirname(stock.weft()))
        subprocess.run([stock.workspace_file("tools/install-files"), stage, cls.prefix], check=True, timeout=120)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()
        super().tearDownClass()

    def installed(self, pattern):
        found = glob.glob(os.path.join(self.prefix, pattern), recursive=True)
        self.assertTrue(found, f"nothing is installed as {pattern}")
        return found

    def test_every_link_of_its_documents_leads_to_something(self):
        broken = []
        for path in self.installed("share/doc/weft/**/*.md"):
            with open(path) as file:
                links = LINK.findall(file.read())
            for link in links:
                if re.match(r"[a-z]+:", link):
                    continue
                target, _, anchor = link.partition("#")
                target = os.path.join(os.path.dirname(path), target) if target else path
                if not os.path.exists(target) or (anchor and anchor not in anchors(target)):
                    broken.append(f"{os.path.relpath(path, self.prefix)}: {link}")
        self.assertEqual(broken, [])

    def test_every_file_below_PREFIX_that_is_named_is_there(self):
        missing = set()
        for path in self.installed("share/doc/weft/**/*.md") + self.installed("share/man/man*/*"):
            with open(path) as file:
                text = re.sub(r"\\f.", " ", file.read())
            for named in re.findall(r"PREFIX/([\w./-]*\w)", text):
                if not os.path.exists(os.path.join(self.prefix, named)):
                    missing.add(f"{os.path.relpath(path, self.prefix)}: PREFIX/{named}")
        self.assertEqual(missing, set())

    def test_the_commands_work_from_there(self):
        for words in (["bin/weft", "doctor"], ["bin/mpiexec", "-n", "1", "true"], ["bin/mpirun", "-version"]):
            done = subprocess.run([os.path.join(self.prefix, words[0]), *words[1:]], env=stock.environment(), capture_output=True,
                                  text=True, timeout=60)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


if __name__ == "__main__":
    stock.main()
