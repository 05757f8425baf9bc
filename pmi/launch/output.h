#ifndef PMI_LAUNCH_OUTPUT_H_
#define PMI_LAUNCH_OUTPUT_H_

#include <chrono>
#include <compare>
#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace weft::pmi {

// The source of output: a rank of the first job or of a spawned one.
struct Writer {
  Writer(int rank_, int job_ = 0) : job(job_), rank(rank_) {}  // a rank alone means the first job
  int job;
  int rank;
  auto operator<=>(const Writer&) const = default;
};

// Merges the output of the ranks into one stream, line by line, so that lines of different ranks never mix. A line is
// kept until it is complete, the rank ends, or it is longer than kLongestLine. Only rank 0 of the first job has an
// incomplete line shown after a moment of silence, since it may be a prompt. If another rank writes next, a line end is
// inserted.
class OutputMerger {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr size_t kLongestLine = 64 * 1024;  // bytes
  static constexpr size_t kMostUnwritten = 1 << 20;  // bytes; beyond this the caller should add no more
  static constexpr std::chrono::milliseconds kSilence{200};

  // The text in front of each line of a rank; empty: none.
  using Label = std::function<std::string(Writer)>;
  // "[rank] ", or "[job 1 rank 0] ".
  static std::string RankLabel(Writer writer);

  explicit OutputMerger(Label label) : label_(std::move(label)) {}
  // `label`: RankLabel, or none.
  explicit OutputMerger(bool label) : label_(label ? RankLabel : Label()) {}

  void Add(Writer writer, std::string_view bytes, Clock::time_point now);
  void AddOwnLine(std::string_view line);  // a line of mpiexec: without label, and passed without its line end
  void Finish(Writer writer);              // the writer writes no more
  // The time of the next Tick().
  std::optional<Clock::time_point> deadline() const { return prompt_at_; }
  void Tick(Clock::time_point now);

  size_t unwritten() const { return out_.size() - written_; }
  // Writes as much as `fd` accepts without waiting (it should be ready, by poll). Returns 0, or the errno of a
  // permanent failure.
  int WriteTo(int fd);
  // From now on output is dropped.
  void Discard();

 private:
  void Emit(Writer writer, std::string_view text);
  void EmitPartial(Writer writer);

  const Label label_;
  bool discarding_ = false;
  std::map<Writer, std::string> partial_;  // lines without end
  std::optional<Writer> unfinished_;       // the writer of the incomplete line at the end of `out_`
  std::optional<Clock::time_point> prompt_at_;
  std::string out_;
  size_t written_ = 0;
};

}  // namespace weft::pmi

#endif  // PMI_LAUNCH_OUTPUT_H_
