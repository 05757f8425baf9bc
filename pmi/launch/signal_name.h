#ifndef PMI_LAUNCH_SIGNAL_NAME_H_
#define PMI_LAUNCH_SIGNAL_NAME_H_

namespace weft::pmi {

// "TERM"; nullptr: no signal of Linux has that number, or it is a real-time signal. As sigabbrev_np(3), which glibc has since 2.32 only.
const char* SignalAbbreviation(int number);

}  // namespace weft::pmi

#endif  // PMI_LAUNCH_SIGNAL_NAME_H_
