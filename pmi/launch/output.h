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

// Who writes: a rank of the first job, or of one that was spawned.
struct Writer {
  Writer(int rank_, int job_ = 0) : job(job_), rank(rank_) {}  // NOLINT: a rank alone is of the first job
  int job;
  int rank;
  auto operator<=>(const Writer&) const = default;
};

// Merges what the ranks write into one stream, line by line, so that lines of different ranks never mix: a line is kept until its
// end is there, the rank ends, or it is longer than kLongestLine. Rank 0 of the first job alone gets an unfinished line shown after a moment of
// silence, since it may be a prompt; if another rank writes next, a line end stands between.
class OutputMerger {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr size_t kLongestLine = 64 * 1024;  // bytes
  static constexpr size_t kMostUnwritten = 1 << 20;  // bytes, from which on the caller should add no more
  static constexpr std::chrono::milliseconds kSilence{200};

  // What stands in front of each line of a rank; empty: nothing.
  using Label = std::function<std::string(Writer)>;
  // "[rank] ", or "[job 1 rank 0] ".
  static std::string RankLabel(Writer writer);

  explicit OutputMerger(Label label) : label_(std::move(label)) {}
  // `label`: RankLabel, or none.
  explicit OutputMerger(bool label) : label_(label ? RankLabel : Label()) {}

  void Add(Writer writer, std::string_view bytes, Clock::time_point now);
  void AddOwnLine(std::string_view line);  // mpiexec's: without label, and without its line end
  void Finish(Writer writer);              // it writes no more
  // When Tick() has something to do.
  std::optional<Clock::time_point> deadline() const { return prompt_at_; }
  void Tick(Clock::time_point now);

  size_t unwritten() const { return out_.size() - written_; }
  // Writes what `fd` takes without waiting (it should be ready, by poll). 0, or the errno of a failure that will not pass.
  int WriteTo(int fd);
  // From here on what comes is dropped.
  void Discard();

 private:
  void Emit(Writer writer, std::string_view text);
  void EmitPartial(Writer writer);

  const Label label_;
  bool discarding_ = false;
  std::map<Writer, std::string> partial_;  // lines without end
  std::optional<Writer> unfinished_;       // whose unfinished line is the last thing in `out_`
  std::optional<Clock::time_point> prompt_at_;
  std::string out_;
  size_t written_ = 0;
};

}  // namespace weft::pmi

#endif  // PMI_LAUNCH_OUTPUT_H_
