"""What M. Tsai's thesis "Hybrid Design of MPI over SCTP" (UBC 2007) prints in chapter 4: four hosts with FreeBSD 6.2, SCTP in its kernel, two networks of
1 Gbit/s. Its curves have no figures; these are all that the text and the bars give."""

# Figures 4.4 and 4.5, Mbit/s.
ONE_PATH = 980  # the most that any configuration with one path reaches
OVER_TIME = {"failover": 911, "cmt": 1270, "pf": 1320}  # averages over 120 s; the second link was slower than the first
FAILOVER_STALL = (2, 3)  # seconds; its SCTP was tuned to recover within 5
BANDWIDTH_AT = 1 << 20  # bytes of a message
BANDWIDTH = {"tcp": 980, "sctp": 980, "cmt": 1700}
OPEN_MPI_TWO_PATHS = 1560
CMT_AHEAD_FROM = 2048  # bytes of a message above which two paths carry more than one

# Figure 4.2: what windows over iWARP take of the time of windows over messages.
FENCE_RATIO = (1.02, 1.08)
# Figure 4.3, seconds.
MIXED = {"hybrid": 3.820722, "messages": 4.51761}


def ratio_to_one_path(mode):
    return OVER_TIME[mode] / ONE_PATH
