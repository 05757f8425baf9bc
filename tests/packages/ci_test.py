"""The action for GitHub, the template for GitLab and the Containerfile: each of their steps runs in a root directory of Debian, in which
verbs programs then run on Weft. Run by ./test --packages: see README.md.

What these services do themselves is played: the inputs of the action, its file of variables, the files of COPY."""

import functools
import glob
import http.server
import json
import os
import re
import shlex
import subprocess
import tempfile
import threading
import unittest

import root
import stock
import yaml

VERSION = "1.2.3+4.g0123456789"
FOLDER = "/tmp/packages"


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


class Services(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.base = root.base()
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = folder.name
        stage = os.path.dirname(os.path.dirname(stock.weft()))
        subprocess.run([stock.workspace_file("tools/package"), "--stage", stage, "--output", cls.folder, "deb"], check=True,
                       env={**os.environ, "PACKAGE_VERSION": VERSION, "SOURCE_DATE_EPOCH": "1700000000"}, stdout=subprocess.DEVNULL)

    def setUp(self):
        self.root = root.Root(self.base)
        self.addCleanup(self.root.close)

    def copy_packages(self, folder=FOLDER):
        for path in glob.glob(self.folder + "/*.deb"):
            self.root.copy_in(path, os.path.join(folder, os.path.basename(path)))

    def serve_packages(self):
        """The packages at an address."""
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=self.folder))
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        return f"http://127.0.0.1:{server.server_port}"

    def sees_devices(self, command="weft run ibv_devices", **settings):
        self.assertIn("weft_lo", self.root.run(command, **settings))


class Action(Services):
    """.github/actions/setup-weft"""

    def perform(self, status=0, **inputs):
        """Runs the steps as a runner does. Returns the variables that they leave to later steps."""
        with open(stock.workspace_file(".github/actions/setup-weft/action.yml")) as file:
            action = yaml.safe_load(file)
        self.assertEqual(action["runs"]["using"], "composite")
        self.assertLessEqual(set(inputs), set(action["inputs"]))
        values = {f"inputs.{name}": inputs.get(name, str(about.get("default", ""))) for name, about in action["inputs"].items()}
        values.update({"github.server_url": "https://example.org", "github.action_repository || github.repository": "weft/weft"})

        def evaluate(text):
            return re.sub(r"\$\{\{ *(.*?) *\}\}", lambda found: values[found.group(1)], text)

        for step in action["runs"]["steps"]:
            self.assertEqual(step["shell"], "bash")
            if "if" in step:
                name, wanted = re.fullmatch(r"(\S+) == '(\w+)'", step["if"]).groups()
                if values[name] != wanted:
                    continue
            environment = {name: evaluate(text) for name, text in step.get("env", {}).items()}
            self.assertNotIn("${{", step["run"])  # an input there could be a command
            output = self.root.run(["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]], status=status, GITHUB_ENV="/tmp/variables", **environment)
            if status != 0:
                return output
        left = self.root.run("cat /tmp/variables 2>/dev/null || true")
        return dict(line.split("=", 1) for line in left.splitlines())

    def test_installs_from_a_folder(self):
        self.copy_packages()
        self.assertEqual(self.perform(packages=FOLDER), {})
        self.sees_devices()
        self.root.run("! command -v mpiexec.weft")

    def test_installs_a_version_from_an_address_with_mpi(self):
        self.perform(packages=self.serve_packages(), version=VERSION, mpi="true")
        self.sees_devices()
        self.assertIn(VERSION, self.root.run("mpiexec -version"))

    def test_sets_the_environment_of_later_steps(self):
        self.copy_packages()
        self.sees_devices("ibv_devices", **self.perform(packages=FOLDER, environment="true"))

    def test_says_what_is_missing(self):
        self.assertIn("::error::setup-weft: give a version", self.perform(status=1))
        self.root.run(["mkdir", "/tmp/empty"])
        self.assertIn("::error::setup-weft: not one file weft_*", self.perform(status=1, packages="/tmp/empty"))
        self.assertIn("::error::setup-weft: give the version", self.perform(status=1, packages="http://127.0.0.1:1"))

    def test_says_that_the_version_is_not_there(self):
        self.assertIn("404", self.perform(status=22, packages=self.serve_packages(), version="9.9.9"))


class Template(Services):
    """docs/ci/gitlab-weft.yml"""

    def perform(self, **variables):
        with open(stock.workspace_file("docs/ci/gitlab-weft.yml")) as file:
            job = yaml.safe_load(file)[".weft"]
        self.assertLessEqual(set(variables), set(job["variables"]))
        script = "set -eo pipefail\n" + "\n".join(job["before_script"])
        self.root.run(["bash", "-c", script], **{**job["variables"], **variables})

    def test_installs_from_a_folder(self):
        self.copy_packages()
        self.perform(SETUP_WEFT_PACKAGES=FOLDER)
        self.sees_devices()

    def test_installs_a_version_from_an_address_with_mpi(self):
        self.perform(SETUP_WEFT_PACKAGES=self.serve_packages(), SETUP_WEFT_VERSION=VERSION, SETUP_WEFT_MPI="true")
        self.sees_devices()
        self.assertIn(VERSION, self.root.run("mpiexec -version"))


class Container(Services):
    """docs/ci/Containerfile"""

    def test_makes_an_image_in_which_programs_run(self):
        with open(stock.workspace_file("docs/ci/Containerfile")) as file:
            text = re.sub(r"\\\n", "", file.read())
        steps = [line.split(None, 1) for line in text.splitlines() if line and not line.startswith("#")]
        settings = {}
        for word, rest in steps:
            if word == "FROM":
                self.assertRegex(rest, r"^docker\.io/library/debian:12")
            elif word == "COPY":
                *patterns, target = shlex.split(rest)
                for path in [path for pattern in patterns for path in glob.glob(os.path.join(self.folder, pattern))]:
                    self.root.copy_in(path, target + os.path.basename(path))
            elif word == "RUN":
                self.root.run(["sh", "-c", rest])
            elif word in ("ENTRYPOINT", "CMD"):
                settings[word] = json.loads(rest)
            else:
                self.fail(f"a step that this test does not know: {word}")
        self.assertIn("weft_lo", self.root.run(settings["ENTRYPOINT"] + settings["CMD"]))
        self.assertIn("weft_lo", self.root.run(settings["ENTRYPOINT"] + ["ibv_devices"]))


if __name__ == "__main__":
    unittest.main(verbosity=2)
