#ifndef PMI_SERVER_RECEPTION_H_
#define PMI_SERVER_RECEPTION_H_

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "pmi/server/secret_check.h"
#include "pmi/wire/dialect.h"

namespace weft::pmi {

// Where a connection says which rank it is that came to a port, where nothing but its words tells:
//
//   PMI-1   cmd=initack pmiid=RANK, which is answered; then cmd=init, or init_oob, which Server::Admit() answers
//   PMI-2   cmd=init pmi_version=2, which is answered; then cmd=fullinit;pmirank=RANK; and a proof where there is a secret
//
// Nobody has a rank's place before that. No I/O.
class Reception {
 public:
  struct Job {
    std::string id;
    int size = 0;
    std::string secret = {};  // to be proven, so that only PMI-2 will do; empty: none
  };
  // One who has said who it is.
  struct Guest {
    int rank = 0;
    bool out_of_band = false;  // it wants to hear what the launcher says by itself, not to ask
    std::string signal;        // with that; empty: none
    std::unique_ptr<Dialect> dialect;
    Question question;  // its last, which is not answered yet
  };

  // `job` outlives this.
  explicit Reception(const Job* job);

  // Bytes as they come, cut anywhere. What is to be sent back.
  std::string Receive(std::string_view bytes);
  // Once; then this is done.
  std::optional<Guest> TakeGuest();
  // Why it was turned away, the end of "it ..."; empty: it was not. What Receive() gave is still to be sent.
  const std::string& problem() const { return problem_; }

 private:
  std::string Handle(const Question& question);
  std::string Init(const Question& question, const ask::Init& init);
  std::string Introduce(const Question& question, const ask::Introduce& introduce);
  std::string Prove(const Question& question, const ask::Prove& prove);
  std::string Welcome(const Question& question);
  // Answers with a refusal, and turns it away.
  std::string Refuse(const Question& question, std::string why);
  std::string TurnAway(std::string problem);
  std::string Write(const Question& question, const Answer& answer) const { return dialect_->Write(question, answer); }

  const Job* const job_;
  std::unique_ptr<Dialect> dialect_;
  SecretCheck check_;
  std::optional<int> rank_;  // which it says it is
  ask::Init init_;           // PMI-2
  std::optional<Guest> guest_;
  bool done_ = false;
  std::string problem_;
};

}  // namespace weft::pmi

#endif  // PMI_SERVER_RECEPTION_H_
