#include "pmi/server/reception.h"

#include <utility>

namespace weft::pmi {

Reception::Reception(const Job* job) : job_(job), dialect_(Dialect::Text(Dialect::Side::kLauncher)), check_(job->secret) {}

std::string Reception::Receive(std::string_view bytes) {
  if (done_) return {};
  dialect_->Append(bytes);
  std::string answers;
  while (!done_) {
    const auto question = dialect_->NextQuestion();
    if (question) {
      answers += Handle(*question);
    } else {
      if (!dialect_->error().empty()) TurnAway("sent " + dialect_->error());
      break;
    }
  }
  return answers;
}

std::optional<Reception::Guest> Reception::TakeGuest() { return std::exchange(guest_, std::nullopt); }

std::string Reception::TurnAway(std::string problem) {
  problem_ = std::move(problem);
  done_ = true;
  return {};
}

std::string Reception::Refuse(const Question& question, std::string why) {
  std::string answer = Write(question, {.code = 1, .why = why});
  TurnAway("was refused: " + why);
  return answer;
}

std::string Reception::Handle(const Question& question) {
  if (const auto* init = std::get_if<ask::Init>(&question.request)) return Init(question, *init);
  if (const auto* introduce = std::get_if<ask::Introduce>(&question.request)) return Introduce(question, *introduce);
  if (const auto* prove = std::get_if<ask::Prove>(&question.request)) return Prove(question, *prove);
  return TurnAway("sent a request before it had told its rank");
}

std::string Reception::Init(const Question& question, const ask::Init& init) {
  if (rank_) {  // PMI-1 has said it; from here on it may be PMI-2 as well
    init_ = init;
    return Welcome(question);
  }
  if (init.version != 2) {
    // One that knows version 2 too goes on with it.
    if (check_.needed()) return Write(question, {.code = -1, .number = 2, .subversion = 0});
    return TurnAway("said init of PMI version " + std::to_string(init.version) + " before initack, which tells its rank");
  }
  init_ = init;
  std::string answer = Write(question, {.number = 2, .subversion = 0});
  auto counted = Dialect::Counted(Dialect::Side::kLauncher);
  counted->Append(dialect_->TakeRest());
  dialect_ = std::move(counted);
  return answer;
}

std::string Reception::Introduce(const Question& question, const ask::Introduce& introduce) {
  if (rank_) return TurnAway("told its rank twice");
  const std::string known = std::to_string(job_->size);
  const bool is_rank = introduce.rank && *introduce.rank >= 0 && *introduce.rank < job_->size;
  if (dialect_->version() == 1) {
    if (check_.needed()) return TurnAway("used PMI version 1, which cannot prove knowledge of the secret");
    if (!is_rank) return TurnAway("claims to be rank " + (introduce.rank ? std::to_string(*introduce.rank) : "of nobody") + " of " + known);
    rank_ = introduce.rank;
    return Write(question, {.identity = {*rank_, job_->size, 0, {}}});
  }
  if (!introduce.job_id.empty() && introduce.job_id != job_->id) {
    return Refuse(question, "pmijobid " + Printable(introduce.job_id) + " is not " + job_->id + ", which is served here");
  }
  if (!is_rank) {
    return Refuse(question, introduce.rank ? "pmirank " + std::to_string(*introduce.rank) + " is none of " + known : std::string("pmirank is missing"));
  }
  rank_ = introduce.rank;
  const auto answer = check_.Ask(introduce);
  if (!answer) return Welcome(question);
  if (answer->code != 0) return Refuse(question, answer->why);
  return Write(question, *answer);
}

std::string Reception::Prove(const Question& question, const ask::Prove& prove) {
  if (!check_.awaits_proof()) return TurnAway("answered a challenge that was not sent");
  if (!check_.Accept(prove)) return TurnAway("does not know the secret");
  return Welcome(question);
}

std::string Reception::Welcome(const Question& question) {
  guest_ = Guest{*rank_, init_.out_of_band, init_.signal, std::move(dialect_), question};
  done_ = true;
  return {};
}

}  // namespace weft::pmi
