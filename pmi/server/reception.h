#ifndef PMI_SERVER_RECEPTION_H_
#define PMI_SERVER_RECEPTION_H_

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "pmi/server/secret_check.h"
#include "pmi/wire/dialect.h"

namespace weft::pmi {

// The part of a connection in which a rank that connected to a port tells which rank it is; nothing else identifies it:
//
//   PMI-1   cmd=initack pmiid=RANK, which is answered; then cmd=init, or init_oob, which Server::Admit() answers
//   PMI-2   cmd=init pmi_version=2, which is answered; then cmd=fullinit;pmirank=RANK; and a proof if there is a secret
//
// No process gets the place of a rank before that. No I/O.
class Reception {
 public:
  struct Job {
    std::string id;
    int size = 0;
    std::string secret = {};  // must be proven, which requires PMI-2; empty: none
  };
  // A rank that has identified itself.
  struct Guest {
    int rank = 0;
    bool out_of_band = false;  // it wants to receive announcements, not to send requests
    std::string signal;        // the signal that accompanies them; empty: none
    std::unique_ptr<Dialect> dialect;
    Question question;  // its last request, which is not answered yet
  };

  // `job` must outlive this.
  explicit Reception(const Job* job);

  // Takes received bytes, cut anywhere. Returns the bytes to send.
  std::string Receive(std::string_view bytes);
  // Returns the guest once; after that this object is done.
  std::optional<Guest> TakeGuest();
  // Why the rank was refused, as the end of "it ..."; empty: it was not. The result of Receive() must still be sent.
  const std::string& problem() const { return problem_; }

 private:
  std::string Handle(const Question& question);
  std::string Init(const Question& question, const ask::Init& init);
  std::string Introduce(const Question& question, const ask::Introduce& introduce);
  std::string Prove(const Question& question, const ask::Prove& prove);
  std::string Welcome(const Question& question);
  // Answers with a refusal, and ends the reception.
  std::string Refuse(const Question& question, std::string why);
  std::string TurnAway(std::string problem);
  std::string Write(const Question& question, const Answer& answer) const { return dialect_->Write(question, answer); }

  const Job* const job_;
  std::unique_ptr<Dialect> dialect_;
  SecretCheck check_;
  std::optional<int> rank_;  // as the rank says
  ask::Init init_;           // PMI-2
  std::optional<Guest> guest_;
  bool done_ = false;
  std::string problem_;
};

}  // namespace weft::pmi

#endif  // PMI_SERVER_RECEPTION_H_
