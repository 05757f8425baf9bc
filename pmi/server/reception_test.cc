#include "pmi/server/reception.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pmi/wire/challenge.h"
#include "pmi/wire/counted.h"

namespace weft::pmi {
namespace {

using ::testing::HasSubstr;

constexpr char kInit2[] = "cmd=init pmi_version=2 pmi_subversion=0\n";
constexpr char kReady2[] = "cmd=response_to_init pmi_version=2 pmi_subversion=0 rc=0\n";

std::string Counted(const std::string& fields) {
  const std::string length = std::to_string(fields.size());
  return std::string(CountedReader::kLengthDigits - length.size(), ' ') + length + fields;
}

struct PmiReception : ::testing::Test {
  Reception::Job job{"kvs_1", 4};
  Reception::Job guarded{"kvs_1", 4, "open sesame"};

  // Why one who says all this is turned away.
  static std::string ProblemOf(const Reception::Job& where, const std::string& bytes) {
    Reception reception(&where);
    reception.Receive(bytes);
    EXPECT_FALSE(reception.TakeGuest());
    return reception.problem();
  }
};

TEST_F(PmiReception, LearnsTheRankOfPmi1FromInitack) {
  Reception reception(&job);
  EXPECT_EQ(reception.Receive("cmd=initack pmiid=3\n"), "cmd=initack\ncmd=set size=4\ncmd=set rank=3\ncmd=set debug=0\n");
  EXPECT_FALSE(reception.TakeGuest());
  EXPECT_EQ(reception.Receive("cmd=init pmi_version=1 pmi_subversion=1\ncmd=get_maxes\n"), "");
  auto guest = reception.TakeGuest();
  ASSERT_TRUE(guest);
  EXPECT_EQ(guest->rank, 3);
  EXPECT_FALSE(guest->out_of_band);
  EXPECT_TRUE(std::holds_alternative<ask::Init>(guest->question.request));
  const auto next = guest->dialect->NextQuestion();
  ASSERT_TRUE(next);
  EXPECT_TRUE(std::holds_alternative<ask::Maxes>(next->request));
}

TEST_F(PmiReception, LearnsTheRankOfPmi2FromFullinitCutAnywhere) {
  const std::string bytes = kInit2 + Counted("cmd=fullinit;pmijobid=kvs_1;pmirank=2;threaded=TRUE;") + Counted("cmd=job-getid;");
  for (size_t cut = 0; cut <= bytes.size(); ++cut) {
    Reception reception(&job);
    std::string answers = reception.Receive(bytes.substr(0, cut));
    auto guest = reception.TakeGuest();
    if (!guest) {
      answers += reception.Receive(bytes.substr(cut));
      guest = reception.TakeGuest();
    }
    EXPECT_EQ(answers, kReady2);
    ASSERT_TRUE(guest) << cut << " " << reception.problem();
    EXPECT_EQ(guest->rank, 2);
    EXPECT_EQ(guest->dialect->version(), 2);
  }
}

TEST_F(PmiReception, AsksForAProofWhereThereIsASecret) {
  Reception reception(&guarded);
  // One that tries version 1 first is told which it is to be.
  EXPECT_EQ(reception.Receive("cmd=init pmi_version=1 pmi_subversion=1\n"), "cmd=response_to_init pmi_version=2 pmi_subversion=0 rc=-1\n");
  EXPECT_EQ(reception.Receive(kInit2), kReady2);
  const std::string asked = reception.Receive(Counted("cmd=fullinit;pmirank=0;authtype=challenge-sha256;"));
  CountedReader reader;
  reader.Append(asked);
  const auto challenge = reader.Next();
  ASSERT_TRUE(challenge);
  EXPECT_EQ(challenge->command, "auth-response");
  EXPECT_FALSE(reception.TakeGuest());
  EXPECT_EQ(reception.Receive(Counted("cmd=auth-response-complete;authinfo=" + ProofFor("open sesame", *challenge->Find("authinfo")) + ";")), "");
  EXPECT_TRUE(reception.TakeGuest());
  EXPECT_EQ(reception.problem(), "");
}

TEST_F(PmiReception, TurnsAwayWhoDoesNotKnowTheSecret) {
  const std::string start = kInit2 + Counted("cmd=fullinit;pmirank=0;authtype=challenge-sha256;");
  EXPECT_EQ(ProblemOf(guarded, start + Counted("cmd=auth-response-complete;authinfo=" + ProofFor("open sesame", "1") + ";")), "does not know the secret");
  EXPECT_EQ(ProblemOf(guarded, start + Counted("cmd=auth-response-complete;")), "does not know the secret");
  EXPECT_EQ(ProblemOf(guarded, start + Counted("cmd=fullinit;pmirank=1;authtype=challenge-sha256;")), "told its rank twice");
  EXPECT_EQ(ProblemOf(guarded, kInit2 + Counted("cmd=fullinit;pmirank=0;")), "was refused: authtype=challenge-sha256 is needed here");
  EXPECT_EQ(ProblemOf(guarded, kInit2 + Counted("cmd=auth-response-complete;authinfo=1;")), "answered a challenge that was not sent");
  EXPECT_THAT(ProblemOf(guarded, "cmd=initack pmiid=0\n"), HasSubstr("PMI version 1, which cannot prove"));
}

TEST_F(PmiReception, TurnsAwayWhoIsNoRankOfTheJob) {
  for (const char* rank : {"4", "-1", "99999999999", "x"}) {
    EXPECT_THAT(ProblemOf(job, "cmd=initack pmiid=" + std::string(rank) + "\n"), HasSubstr("of 4"));
    EXPECT_THAT(ProblemOf(job, kInit2 + Counted("cmd=fullinit;pmirank=" + std::string(rank) + ";")), HasSubstr("was refused: pmirank"));
  }
  EXPECT_EQ(ProblemOf(job, kInit2 + Counted("cmd=fullinit;")), "was refused: pmirank is missing");
  EXPECT_EQ(ProblemOf(job, kInit2 + Counted("cmd=fullinit;pmijobid=kvs_2;pmirank=0;")), "was refused: pmijobid kvs_2 is not kvs_1, which is served here");
  Reception reception(&job);
  EXPECT_THAT(reception.Receive(kInit2 + Counted("cmd=fullinit;pmirank=7;")), HasSubstr("rc=1;errmsg=pmirank 7 is none of 4;"));
}

TEST_F(PmiReception, TurnsAwayWhatComesOutOfTurn) {
  EXPECT_THAT(ProblemOf(job, "cmd=get_maxes\n"), HasSubstr("before it had told its rank"));
  EXPECT_THAT(ProblemOf(job, "cmd=init pmi_version=1 pmi_subversion=1\n"), HasSubstr("before initack"));
  EXPECT_EQ(ProblemOf(job, "cmd=initack pmiid=1\ncmd=initack pmiid=2\n"), "told its rank twice");
  EXPECT_THAT(ProblemOf(job, "cmd=initack pmiid=1\ncmd=barrier_in\n"), HasSubstr("before it had told"));
  EXPECT_THAT(ProblemOf(job, kInit2 + Counted("cmd=kvs-fence;")), HasSubstr("before it had told"));
  EXPECT_THAT(ProblemOf(job, "GET / HTTP/1.1\r\n"), HasSubstr("sent "));
  EXPECT_THAT(ProblemOf(job, std::string(MessageReader::kLongestLine + 1, 'x')), HasSubstr("sent "));
  EXPECT_THAT(ProblemOf(job, std::string(kInit2) + "abcdef"), HasSubstr("sent "));
}

TEST_F(PmiReception, KnowsAnOutOfBandConnection) {
  for (const std::string& bytes : {std::string("cmd=initack pmiid=1\ncmd=init_oob signal=SIGUSR1 pmi_version=1 pmi_subversion=1\n"),
                                   "cmd=init_oob signal=SIGUSR1 pmi_version=2 pmi_subversion=0\n" + Counted("cmd=fullinit;pmirank=1;")}) {
    Reception reception(&job);
    reception.Receive(bytes);
    const auto guest = reception.TakeGuest();
    ASSERT_TRUE(guest) << reception.problem();
    EXPECT_EQ(guest->rank, 1);
    EXPECT_TRUE(guest->out_of_band);
    EXPECT_EQ(guest->signal, "SIGUSR1");
  }
}

}  // namespace
}  // namespace weft::pmi
