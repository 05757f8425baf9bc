"""A table, as text and as Markdown."""


class Table:
    """`rows`: of strings, as many as `columns`; `notes`: a line each, below."""

    def __init__(self, title, columns, rows, notes=()):
        self.title, self.columns, self.rows, self.notes = title, list(columns), [list(row) for row in rows], list(notes)
        for row in self.rows:
            if len(row) != len(self.columns):
                raise ValueError(f"{row} has not {len(self.columns)} columns")

    def text(self):
        widths = [max(len(row[i]) for row in [self.columns, *self.rows]) for i in range(len(self.columns))]
        lines = [f"{row[0]:<{widths[0]}}" + "".join(f"  {cell:>{width}}" for cell, width in zip(row[1:], widths[1:])) for row in [self.columns, *self.rows]]
        return "\n".join([self.title, *(line.rstrip() for line in lines), *self.notes])

    def markdown(self):
        rule = ["---"] + ["--:"] * (len(self.columns) - 1)
        lines = ["| " + " | ".join(row) + " |" for row in [self.columns, rule, *self.rows]]
        return "\n".join([f"**{self.title}**", "", *lines, *(line for note in self.notes for line in ("", note))])


def bytes_text(count):
    """65536 is 64 KiB."""
    for unit, size in (("MiB", 1 << 20), ("KiB", 1 << 10)):
        if count >= size and count % size == 0:
            return f"{count // size} {unit}"
    return f"{count} B"
