"""When which link is down."""

import dataclasses
import time


@dataclasses.dataclass(frozen=True)
class Cut:
    link: int
    begins: float  # seconds
    ends: float


@dataclasses.dataclass(frozen=True)
class Schedule:
    seconds: float  # of the whole transfer
    cuts: tuple

    def scaled(self, seconds):
        """The same in `seconds` in all."""
        factor = seconds / self.seconds
        return Schedule(seconds, tuple(Cut(cut.link, cut.begins * factor, cut.ends * factor) for cut in self.cuts))

    def most(self):
        """What two equal links can carry on average, as a multiple of one that is never down."""
        return 2 - sum(cut.ends - cut.begins for cut in self.cuts) / self.seconds

    def changes(self):
        """(when, link, whether it is up then), in order."""
        return sorted([(cut.begins, cut.link, False) for cut in self.cuts] + [(cut.ends, cut.link, True) for cut in self.cuts])

    def run(self, change, running):
        """Calls `change(link, up)` when it is time, for as long as `running()`. Returns after the last."""
        began = time.monotonic()
        for when, link, up in self.changes():
            while (left := began + when - time.monotonic()) > 0 and running():
                time.sleep(min(left, 0.1))
            if running():
                change(link, up)


# Figure 4.4: the primary link, then the secondary.
THESIS = Schedule(120, (Cut(0, 15, 35), Cut(1, 55, 75)))
