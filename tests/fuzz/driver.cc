// Runs a fuzz target without libFuzzer: replays the files it is given, then tries seeded random inputs, half of them
// bytes from nowhere, half mutations of those files. A failure names the seed and the run, and keeps the input.
//
//   TARGET [--seed=N] [--runs=N] [--max_length=N] FILE...

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);
extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) __attribute__((weak));
// Sanitizers end the process without a signal, but call this first.
extern "C" void __sanitizer_set_death_callback(void (*callback)()) __attribute__((weak));

namespace {

using Input = std::vector<uint8_t>;

Input g_input;             // what runs now
std::string g_where;       // a file name, or the seed and the run
std::string g_keep_input;  // where a failing input goes

void Describe() {
  std::fprintf(stderr, "fuzz target failed: %s, input of %zu bytes\n", g_where.c_str(), g_input.size());
  if (g_keep_input.empty()) return;
  if (FILE* file = std::fopen(g_keep_input.c_str(), "wb")) {
    std::fwrite(g_input.data(), 1, g_input.size(), file);
    std::fclose(file);
    std::fprintf(stderr, "the input is kept in %s\n", g_keep_input.c_str());
  }
}

void OnSignal(int signal_number) {
  signal(signal_number, SIG_DFL);
  Describe();
  raise(signal_number);
}

void Run(Input input, std::string where) {
  g_input = std::move(input);
  g_where = std::move(where);
  // An allocation of exactly this size lets ASan see a read past the end.
  Input exact(g_input);
  exact.shrink_to_fit();
  LLVMFuzzerTestOneInput(exact.data(), exact.size());
}

class Generator {
 public:
  Generator(uint64_t seed, size_t max_length, const std::vector<Input>& corpus)
      : random_(seed), max_length_(max_length), corpus_(corpus) {}

  Input Next() {
    if (corpus_.empty() || Below(2) == 0) return RandomBytes();
    Input input = corpus_[Below(corpus_.size())];
    for (size_t changes = 1 + Below(4); changes != 0; --changes) Mutate(input);
    if (input.size() > max_length_) input.resize(max_length_);
    return input;
  }

 private:
  size_t Below(size_t bound) { return random_() % bound; }

  Input RandomBytes() {
    // Short inputs reach as much as long ones and run faster.
    size_t length = Below(4) == 0 ? Below(max_length_ + 1) : Below(std::min<size_t>(max_length_, 128) + 1);
    Input input(length);
    const bool sparse = Below(2) == 0;
    for (uint8_t& byte : input) byte = sparse && Below(3) != 0 ? 0 : static_cast<uint8_t>(random_());
    return input;
  }

  void Mutate(Input& input) {
    static constexpr uint8_t kInteresting[] = {0, 1, 2, 3, 4, 0x3f, 0x40, 0x7f, 0x80, 0xc0, 0xfe, 0xff};
    if (input.empty()) {
      input.push_back(static_cast<uint8_t>(random_()));
      return;
    }
    const size_t at = Below(input.size());
    switch (Below(7)) {
      case 0:
        input[at] ^= static_cast<uint8_t>(1 << Below(8));
        break;
      case 1:
        input[at] = static_cast<uint8_t>(random_());
        break;
      case 2:
        input[at] = kInteresting[Below(std::size(kInteresting))];
        break;
      case 3:
        input.resize(at);
        break;
      case 4:
        input.insert(input.begin() + at, 1 + Below(8), static_cast<uint8_t>(random_()));
        break;
      case 5:
        input.erase(input.begin() + at, input.begin() + at + std::min<size_t>(input.size() - at, 1 + Below(8)));
        break;
      default: {
        const Input& other = corpus_[Below(corpus_.size())];
        input.resize(at);
        if (!other.empty()) input.insert(input.end(), other.begin() + Below(other.size()), other.end());
      }
    }
  }

  std::mt19937_64 random_;
  size_t max_length_;
  const std::vector<Input>& corpus_;
};

bool ReadFile(const char* name, Input* bytes) {
  FILE* file = std::fopen(name, "rb");
  if (file == nullptr) return false;
  uint8_t block[4096];
  while (size_t count = std::fread(block, 1, sizeof(block), file)) bytes->insert(bytes->end(), block, block + count);
  std::fclose(file);
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  uint64_t seed = 1;
  uint64_t runs = 20000;
  size_t max_length = 4096;
  std::vector<Input> corpus;
  std::vector<std::string> names;

  if (LLVMFuzzerInitialize != nullptr) LLVMFuzzerInitialize(&argc, &argv);
  for (int i = 1; i < argc; ++i) {
    if (std::strncmp(argv[i], "--seed=", 7) == 0) {
      seed = std::strtoull(argv[i] + 7, nullptr, 0);
    } else if (std::strncmp(argv[i], "--runs=", 7) == 0) {
      runs = std::strtoull(argv[i] + 7, nullptr, 0);
    } else if (std::strncmp(argv[i], "--max_length=", 13) == 0) {
      max_length = std::strtoull(argv[i] + 13, nullptr, 0);
    } else {
      Input input;
      if (!ReadFile(argv[i], &input)) {
        std::fprintf(stderr, "cannot read %s\n", argv[i]);
        return 2;
      }
      corpus.push_back(std::move(input));
      names.push_back(argv[i]);
    }
  }
  if (const char* outputs = std::getenv("TEST_UNDECLARED_OUTPUTS_DIR")) {
    g_keep_input = std::string(outputs) + "/failing-input";
  } else {
    g_keep_input = "failing-input";
  }
  for (int signal_number : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL}) {
    if (__sanitizer_set_death_callback == nullptr) signal(signal_number, OnSignal);
  }
  if (__sanitizer_set_death_callback != nullptr) {
    __sanitizer_set_death_callback(Describe);
    signal(SIGABRT, OnSignal);
  }

  for (size_t i = 0; i < corpus.size(); ++i) Run(corpus[i], "corpus file " + names[i]);
  Run({}, "empty input");
  for (uint64_t run = 0; run < runs; ++run) {
    // Each run has a generator of its own, so that any one of them can be repeated alone.
    Generator generator(seed * 0x9e3779b97f4a7c15 + run, max_length, corpus);
    Run(generator.Next(), "--seed=" + std::to_string(seed) + " run " + std::to_string(run));
  }
  std::printf("%zu corpus files and %llu inputs from seed %llu: no failure\n", corpus.size(),
              static_cast<unsigned long long>(runs), static_cast<unsigned long long>(seed));
  return 0;
}
