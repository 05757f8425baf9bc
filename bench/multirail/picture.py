"""The figures as one picture, by gnuplot."""

import os
import subprocess

import printed

COLOURS = {"one path": "gray50", "failover": "#d95f02", "cmt": "#1b9e77", "pf": "#7570b3", "tcp": "gray40", "sctp": "#d95f02"}
TITLES = {"one path": "one path", "failover": "failover", "cmt": "CMT", "pf": "CMT-PF", "tcp": "TCP, one path", "sctp": "SCTP, one path"}


class _Panel:
    """Commands of one plot; data go into the script."""

    def __init__(self, title, y):
        self._lines = ["reset", f"set title '{title}'", f"set ylabel '{y}'", "set grid", "set key outside bottom center horizontal"]
        self._curves = []

    def set(self, command):
        self._lines.append(command)

    def sizes(self):
        """Across: bytes of a message."""
        self._lines += ["set logscale x 2", "set format x '%.0b %BB'"]

    def curve(self, points, style, title):
        name = f"$d{len(self._curves)}"
        self._lines += [f"{name} << EOD", *(" ".join(str(value) for value in point) for point in points), "EOD"]
        self._curves.append(f"{name} {style} title '{title}'")

    def script(self):
        return [*self._lines, "plot " + ", ".join(self._curves)]


def _over_time(results):
    panel = _Panel("Figure 4.4: bandwidth over seconds; a link is down (grey)", "Mbit/s")
    panel.set("set yrange [0:2100]")
    for link, begins, ends in results["cuts"]:
        panel.set(f"set object rectangle from {begins},0 to {ends},2100 fillcolor rgb '#{'dddddd' if link == 0 else 'eeeeee'}' fillstyle solid noborder behind")
        panel.set(f"set label 'link {link}' at {begins},2030 offset 0.3,0")
    for mode, measured in results["modes"].items():
        every = measured["every_s"]
        panel.curve([((i + 0.5) * every, rate) for i, rate in enumerate(measured["samples_mbit_s"])],
                    f"with lines linewidth 1.5 linecolor rgb '{COLOURS[mode]}'", f"{TITLES[mode]} ({measured['mbit_s']:.0f})")
        if mode in printed.OVER_TIME:
            theirs = printed.OVER_TIME[mode]
            panel.curve([(0, theirs), (results["seconds"], theirs)], f"with lines dashtype 2 linecolor rgb '{COLOURS[mode]}'", f"thesis, average {theirs}")
    return panel


def _by_size(results, what):
    panel = _Panel(f"Figure 4.5: bandwidth by size of messages, {what}", "Mbit/s")
    panel.sizes()
    panel.set("set yrange [0:*]")
    for name, points in results.items():
        panel.curve(points, f"with linespoints linewidth 1.5 linecolor rgb '{COLOURS[name]}'", TITLES[name] + (", two paths" if name == "cmt" else ""))
        panel.curve([(printed.BANDWIDTH_AT, printed.BANDWIDTH[name])], f"with points pointtype 6 pointsize 2 linecolor rgb '{COLOURS[name]}'", "thesis")
    return panel


def _fences(results):
    panel = _Panel("Figure 4.2: an operation and a fence, hybrid / messages alone, by size", "ratio of times")
    panel.sizes()
    panel.set("set yrange [0:*]")
    times = {name: dict(map(tuple, rows)) for name, rows in results["fences"].items()}
    for operation, colour in (("put", "#1b9e77"), ("get", "#d95f02")):
        hybrid, messages = times[f"{operation} hybrid"], times[f"{operation} messages"]
        panel.curve([(size, hybrid[size] / messages[size]) for size in hybrid], f"with linespoints linewidth 1.5 linecolor rgb '{colour}'", operation.capitalize())
    sizes = list(times["put hybrid"])
    panel.curve([(size, *printed.FENCE_RATIO) for size in (sizes[0], sizes[-1])], "with filledcurves fillcolor rgb '#cccccc'", "thesis")
    return panel


def _mixed(results):
    panel = _Panel("Figure 4.3: the mixed program, time relative to messages alone", "ratio of times")
    panel.set("set style fill solid 0.5")
    panel.set("set boxwidth 0.35")
    panel.set("set yrange [0:*]")
    panel.set("set xrange [-0.6:1.6]")
    panel.set("set xtics ('messages alone' 0, 'hybrid' 1)")
    ours, theirs = results["mixed"], printed.MIXED
    panel.curve([(-0.18, 1), (0.82, ours["hybrid"] / ours["messages"])], "with boxes linecolor rgb '#1b9e77'", "measured")
    panel.curve([(0.18, 1), (1.18, theirs["hybrid"] / theirs["messages"])], "with boxes linecolor rgb 'gray50'", "thesis")
    return panel


def script(results, path):
    """What gnuplot is told: a panel for each figure that was measured."""
    panels = []
    if "over_time" in results:
        panels.append(_over_time(results["over_time"]))
    panels += [_by_size(results[what], words) for what, words in (("transport", "the transport"), ("mpi", "MPI")) if what in results]
    if "windows" in results:
        panels += [_fences(results["windows"]), _mixed(results["windows"])]
    across, down = min(len(panels), 2), (len(panels) + 1) // 2
    lines = [f"set terminal pngcairo size {850 * across},{520 * down} background rgb 'white'", f"set output '{os.path.abspath(path)}'",
             f"set multiplot layout {down},{across}"]
    for panel in panels:
        lines += panel.script()
    return "\n".join(lines) + "\n"


def draw(results, path):
    subprocess.run(["gnuplot"], input=script(results, path), text=True, check=True)
