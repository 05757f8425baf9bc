"""Two installed Wefts, measured in turns: the arithmetic and the table of bench/against. Nothing is measured here."""

import collections
import statistics

WORSE = 1.10  # a row whose cost ratio is above this is marked


class Row(collections.namedtuple("Row", "suite name size")):
    """A figure that both Wefts have. `size`: bytes (0: none)."""


class Comparison:
    """Figures of both sides, a pair for each round."""

    def __init__(self):
        self.figures = {"this": collections.defaultdict(dict), "other": collections.defaultdict(dict)}
        self.units = {}  # of a row: (unit, whether more is better)

    def add(self, side, number, row, value, unit, more_is_better=False):
        """`value` of one round. A row keeps the unit that it had first."""
        self.figures[side][row][number] = value
        self.units.setdefault(row, (unit, more_is_better))

    def rows(self):
        """In the order in which they were first measured."""
        return list(self.units)

    def median(self, side, row):
        values = self.figures[side].get(row)
        return statistics.median(values.values()) if values else None

    def cost(self, row, this, other):
        """The cost of this Weft as a multiple of the other's: above 1 is worse, for times as for rates. None where there is none."""
        if not this or not other:
            return None
        return other / this if self.units[row][1] else this / other

    def ratio(self, row):
        """The cost of the medians; None where a side has no figure."""
        return self.cost(row, self.median("this", row), self.median("other", row))

    def rounds_worse(self, row):
        """(rounds in which this Weft cost more, rounds that both sides have): a difference that is noise loses about half of them."""
        this, other = self.figures["this"].get(row, {}), self.figures["other"].get(row, {})
        costs = [self.cost(row, this[n], other[n]) for n in sorted(this.keys() & other.keys())]
        return sum(c is not None and c > 1 for c in costs), len(costs)

    def marked(self):
        return [row for row in self.rows() if (self.ratio(row) or 0) > WORSE]

    def missing(self):
        """Rows that one side has not: a benchmark that failed, or one that an older Weft cannot run."""
        return [(side, row) for row in self.rows() for side in ("this", "other") if self.median(side, row) is None]


def figure(value):
    return "-" if value is None else f"{value:.0f}" if abs(value) >= 1000 else f"{value:.2f}" if abs(value) >= 1 else f"{value:.3f}"


def table(comparison):
    """The lines of the table: a heading for each suite, a line for each row."""
    lines, suite = [], None
    for row in comparison.rows():
        if row.suite != suite:
            suite = row.suite
            lines += ["", f"{suite:38}{'bytes':>9}  {'unit':8}{'other':>12}{'this':>12}{'cost':>8}{'worse in':>10}"]
        ratio, (worse, rounds) = comparison.ratio(row), comparison.rounds_worse(row)
        line = f"  {row.name:36}{row.size or '':>9}  {comparison.units[row][0]:8}"
        line += "".join(f"{figure(comparison.median(side, row)):>12}" for side in ("other", "this"))
        line += f"{'-' if ratio is None else format(ratio, '.2f'):>8}{f'{worse}/{rounds}':>10}"
        lines.append(line + (f"  > {WORSE:.2f}" if ratio is not None and ratio > WORSE else ""))
    return lines
