"""Both ends of a transfer over two links: transfer_benchmark at each host."""

import os
import re

import two_links


def built(path):
    """A file that the build made: in the test's runfiles, else below bazel-bin."""
    tree = os.path.dirname(os.path.realpath(__file__)).removesuffix("/transport/sctp/testing")
    runfiles = os.path.join(os.environ.get("TEST_SRCDIR", ""), os.environ.get("TEST_WORKSPACE", ""))
    return os.path.join(runfiles if "TEST_SRCDIR" in os.environ else os.path.join(tree, "bazel-bin"), path)


def start(links, message, *options, paths=2):
    """A server at host two, and a client at host one that sends it messages of that many bytes over the first of the links: both processes.
    `options`: of the client, and "native" of the server too. Whoever calls ends the server."""
    to, own = ",".join(two_links.TWO[:paths]), ",".join(two_links.ONE[:paths])
    program = built("transport/sctp/transfer_benchmark")
    server = links.start("two", program, "server", to, *[option for option in options if option == "native"])
    said = server.stdout.readline()
    ports = re.match(r"port (\d+) udp (\d+)", said)
    if ports is None:
        raise RuntimeError(f"the server does not serve: {said}{server.stdout.read()}")
    return server, links.start("one", program, "client", f"{to}:{ports[1]}:{ports[2]}", str(message), f"from={own}", *options)
