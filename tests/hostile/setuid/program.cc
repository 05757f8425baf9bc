// What a small program with Weft in it does at its start: it asks for devices, and a connection is about to be captured and failed.
#include <unistd.h>

#include <cstdio>

#include "base/settings.h"
#include "faults/injector.h"
#include "sim/device/device.h"
#include "transport/pcap.h"

int main() {
  std::printf("uid %d, euid %d\n", static_cast<int>(getuid()), static_cast<int>(geteuid()));
  std::printf("trusted: %d\n", weft::Settings::EnvironmentIsTrusted());
  std::printf("devices: %d\n", !weft::sim::ListDevices().empty());
  std::printf("captures: %d\n", weft::transport::PcapIfAsked() != nullptr);
  std::printf("wrong faults: %s\n", weft::faults::Injector::Process().problem().c_str());
  return weft::ProcessSettingProblems().empty() ? 0 : 1;
}
