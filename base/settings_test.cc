#include "base/settings.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <string>
#include <vector>

namespace weft {
namespace {

// Sets one variable for the life of a test.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) { setenv(name, value, 1); }
  ~Variable() { unsetenv(name_); }

 private:
  const char* name_;
};

struct Outcome {
  std::vector<std::string> problems;
  Settings settings = Settings::FromEnvironment(&problems);
};

TEST(SettingsTest, DefaultsHoldWhenNothingIsSet) {
  unsetenv("WEFT_SAME_HOST");  // `./test --same-host-off` sets it
  Outcome read;
  EXPECT_TRUE(read.problems.empty());
  EXPECT_EQ(read.settings.crc, CrcPolicy::kAuto);
  EXPECT_FALSE(read.settings.markers);
  EXPECT_EQ(read.settings.mpa_revision, 2);
  EXPECT_TRUE(read.settings.extensions);
  EXPECT_FALSE(read.settings.trace);
  EXPECT_TRUE(read.settings.pcap.empty());
  EXPECT_TRUE(read.settings.devices.empty());
  EXPECT_EQ(read.settings.persona, Persona::kRoce);
  EXPECT_EQ(read.settings.SharesMemory(), SameHost::kAuto);
}

TEST(SettingsTest, EverySettingIsRead) {
  Variable crc("WEFT_MPA_CRC", "off"), markers("WEFT_MPA_MARKERS", "on"), revision("WEFT_MPA_REVISION", "1");
  Variable extensions("WEFT_EXTENSIONS", "off"), trace("WEFT_TRACE", "1"), pcap("WEFT_PCAP", "x.pcap");
  Variable devices("WEFT_DEVICES", "lo,eth0"), persona("WEFT_PERSONA", "iwarp"), llp("WEFT_LLP", "tcp");
  Variable libdir("WEFT_LIBDIR", "/opt/weft"), same_host("WEFT_SAME_HOST", "rings");
  Outcome read;
  EXPECT_TRUE(read.problems.empty());
  EXPECT_EQ(read.settings.crc, CrcPolicy::kOff);
  EXPECT_TRUE(read.settings.markers);
  EXPECT_EQ(read.settings.mpa_revision, 1);
  EXPECT_FALSE(read.settings.extensions);
  EXPECT_TRUE(read.settings.trace);
  EXPECT_EQ(read.settings.pcap, "x.pcap");
  EXPECT_EQ(read.settings.devices, (std::vector<std::string>{"lo", "eth0"}));
  EXPECT_EQ(read.settings.persona, Persona::kIwarp);
  EXPECT_EQ(read.settings.libdir, "/opt/weft");
  EXPECT_EQ(read.settings.same_host, SameHost::kRings);
}

TEST(SettingsTest, WhoAsksForSctpOrForTheBytesOfTheWireGetsAWire) {
  EXPECT_FALSE(Outcome().settings.NeedsWire());
  for (const auto& [name, value] : {std::pair{"WEFT_LLP", "tcp"}, {"WEFT_LLP", "auto"}, {"WEFT_MPA_CRC", "off"}, {"WEFT_SAME_HOST", "off"}}) {
    Variable one(name, value);
    EXPECT_FALSE(Outcome().settings.NeedsWire()) << name << "=" << value;
  }
  for (const auto& [name, value] : {std::pair{"WEFT_LLP", "sctp"}, {"WEFT_MPA_CRC", "on"}, {"WEFT_MPA_MARKERS", "on"},
                                    {"WEFT_PCAP", "x.pcap"}, {"WEFT_FAULTS", "delay after=1"}}) {
    Variable one(name, value);
    EXPECT_TRUE(Outcome().settings.NeedsWire()) << name << "=" << value;
  }
}

TEST(SettingsTest, SettingsOfSctpAreReadAndChecked) {
  Variable llp("WEFT_LLP", "auto"), addresses("WEFT_SCTP_ADDRESSES", "10.0.0.1,fd00::1"), cmt("WEFT_SCTP_CMT", "pf");
  Variable carriage("WEFT_SCTP_CARRIAGE", "ip"), port("WEFT_SCTP_UDP_PORT", "9899"), heartbeat("WEFT_SCTP_HEARTBEAT", "0");
  Variable initial("WEFT_SCTP_RTO_INITIAL", "10"), least("WEFT_SCTP_RTO_MIN", "60000"), most("WEFT_SCTP_RTO_MAX", "300");
  Variable path("WEFT_SCTP_PATH_RETRIES", "1"), retries("WEFT_SCTP_RETRIES", "1000"), streams("WEFT_SCTP_STREAMS", "65535");
  Variable send("WEFT_SCTP_SEND_BUFFER", "262144"), receive("WEFT_SCTP_RECEIVE_BUFFER", "1073741824"), mtu("WEFT_SCTP_PMTU", "576");
  Outcome read;
  EXPECT_TRUE(read.problems.empty());
  EXPECT_EQ(read.settings.llp, Llp::kAuto);
  const SctpSettings& sctp = read.settings.sctp;
  EXPECT_EQ(sctp.addresses, (std::vector<std::string>{"10.0.0.1", "fd00::1"}));
  EXPECT_EQ(sctp.cmt, SctpSettings::Cmt::kPotentiallyFailed);
  EXPECT_EQ(sctp.carriage, SctpSettings::Carriage::kIp);
  EXPECT_EQ(sctp.udp_port, 9899);
  EXPECT_EQ(sctp.heartbeat, 0u);
  EXPECT_EQ(sctp.rto_initial, 10u);
  EXPECT_EQ(sctp.rto_min, 60000u);
  EXPECT_EQ(sctp.rto_max, 300u);
  EXPECT_EQ(sctp.path_retries, 1u);
  EXPECT_EQ(sctp.association_retries, 1000u);
  EXPECT_EQ(sctp.streams, 65535u);
  EXPECT_EQ(sctp.send_buffer, 262144u);
  EXPECT_EQ(sctp.receive_buffer, 1u << 30);
  EXPECT_EQ(sctp.pmtu, 576u);
}

TEST(SettingsTest, TheInterfaceFileFillsInTheAddressesThatAreNotSet) {
  Variable interfaces("WEFT_SCTP_INTERFACES", "/no/such/file");
  {
    Outcome read;
    ASSERT_EQ(read.problems.size(), 1u);
    EXPECT_EQ(read.problems[0], "WEFT_SCTP_INTERFACES: /no/such/file: No such file or directory");
    EXPECT_TRUE(read.settings.sctp.addresses.empty());
  }
  Variable addresses("WEFT_SCTP_ADDRESSES", "10.0.0.1");
  Outcome read;
  EXPECT_TRUE(read.problems.empty());
  EXPECT_EQ(read.settings.sctp.addresses, std::vector<std::string>{"10.0.0.1"});
}

TEST(SettingsTest, BadValuesOfSctpAreRefusedWithTheirRange) {
  for (const auto& [name, value] : std::vector<std::pair<const char*, const char*>>{
           {"WEFT_LLP", "udp"}, {"WEFT_SCTP_ADDRESSES", "10.0.0.1,"}, {"WEFT_SCTP_ADDRESSES", "host"}, {"WEFT_SCTP_CMT", "yes"},
           {"WEFT_SCTP_UDP_PORT", "65536"}, {"WEFT_SCTP_HEARTBEAT", "-1"}, {"WEFT_SCTP_HEARTBEAT", "1s"}, {"WEFT_SCTP_RTO_MIN", "9"},
           {"WEFT_SCTP_STREAMS", "1"}, {"WEFT_SCTP_SEND_BUFFER", "4294967297"}, {"WEFT_SCTP_PMTU", "575"}}) {
    Variable variable(name, value);
    Outcome read;
    ASSERT_EQ(read.problems.size(), 1u) << name << "=" << value;
    EXPECT_TRUE(read.problems[0].starts_with(std::string(name) + "=" + value + " is not allowed; the value must be ")) << read.problems[0];
    EXPECT_FALSE(read.settings.sctp.streams || read.settings.sctp.send_buffer || read.settings.sctp.pmtu || read.settings.sctp.rto_min);
  }
}

TEST(SettingsTest, MisspeltNameIsRefusedWithTheNearestOne) {
  Variable typo("WEFT_MPA_CCR", "off");
  Outcome read;
  ASSERT_EQ(read.problems.size(), 1u);
  EXPECT_EQ(read.problems[0], "WEFT_MPA_CCR is not a setting of Weft; did you mean WEFT_MPA_CRC?");
  EXPECT_EQ(read.settings.crc, CrcPolicy::kAuto);
}

TEST(SettingsTest, NameFarFromAnySettingIsRefusedWithoutAGuess) {
  Variable unknown("WEFT_COMPLETELY_DIFFERENT", "1");
  Outcome read;
  ASSERT_EQ(read.problems.size(), 1u);
  EXPECT_EQ(read.problems[0].find("did you mean"), std::string::npos);
  EXPECT_NE(read.problems[0].find("WEFT_COMPLETELY_DIFFERENT"), std::string::npos);
}

TEST(SettingsTest, NamesOfTheMpiLibraryAreLeftToIt) {
  Variable mpi("WEFT_MPI_HOST", "127.0.0.1"), pmi("WEFT_PMI", "2");
  Outcome read;
  EXPECT_TRUE(read.problems.empty());
}

TEST(SettingsTest, BadValueNamesTheAllowedOnesAndKeepsTheDefault) {
  Variable crc("WEFT_MPA_CRC", "maybe"), persona("WEFT_PERSONA", "rocee"), devices("WEFT_DEVICES", "lo,,eth0");
  Outcome read;
  EXPECT_EQ(read.problems.size(), 3u);
  EXPECT_NE(std::find(read.problems.begin(), read.problems.end(),
                      "WEFT_MPA_CRC=maybe is not allowed; the value must be auto|on|off"),
            read.problems.end());
  EXPECT_EQ(read.settings.crc, CrcPolicy::kAuto);
  EXPECT_EQ(read.settings.persona, Persona::kRoce);
  EXPECT_TRUE(read.settings.devices.empty());
}

TEST(SettingsTest, PartOfTheListOfChoicesIsNoChoice) {
  Variable crc("WEFT_MPA_CRC", "auto|on");
  EXPECT_EQ(Outcome().problems.size(), 1u);
}

TEST(SettingsTest, EmptyValueCountsAsNotSet) {
  Variable crc("WEFT_MPA_CRC", ""), devices("WEFT_DEVICES", "");
  EXPECT_TRUE(Outcome().problems.empty());
}

TEST(SettingsTest, EveryRowOfTheTableHasItsDefaultAmongItsChoices) {
  for (const SettingInfo& setting : AllSettings()) {
    EXPECT_EQ(std::string(setting.name).rfind("WEFT_", 0), 0u);
    EXPECT_NE(std::string(setting.help), "");
    if (std::string(setting.values).find('|') == std::string::npos) continue;
    Variable variable(setting.name, setting.initial);
    EXPECT_TRUE(Outcome().problems.empty()) << setting.name;
  }
}

}  // namespace
}  // namespace weft
