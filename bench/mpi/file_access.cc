#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "file_calls.h"
#include "measure.h"

namespace mpi_bench {
namespace {

constexpr MPI_Offset kEach = MPI_Offset{16} << 20;  // bytes of a rank

// In IO_DIRECTORY, or /tmp; the same name at all ranks.
std::string FileName() {
  const char* directory = std::getenv("IO_DIRECTORY");
  char name[512];
  std::snprintf(name, sizeof name, "%s/mpi_bench.%d", directory != nullptr ? directory : "/tmp", static_cast<int>(getpid()));
  MPI_Bcast(name, sizeof name, MPI_CHAR, 0, MPI_COMM_WORLD);
  return name;
}

class File {
 public:
  explicit File(const std::string& name) {
    if (MPI_File_open(MPI_COMM_WORLD, name.c_str(), MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file_) != 0) {
      MPI_Abort(MPI_COMM_WORLD, 1);
    }
  }
  ~File() { MPI_File_close(&file_); }
  operator MPI_File() const { return file_; }

 private:
  MPI_File file_;
};

// Of some rounds after one to warm up.
struct Figures {
  double rate;                // bytes a second of all ranks together
  double files, exchange;     // microseconds: in reads and writes of the file, of the rank that had most of them, and the rest
};

template <typename Once>
Figures Time(Once once) {
  std::vector<double> rates, files, exchanges;
  for (int round = -1; round < (g_quick ? 3 : 9); round++) {
    MPI_Barrier(MPI_COMM_WORLD);
    const double before = SecondsInFileCalls(), start = MPI_Wtime();
    once();
    const double mine = SecondsInFileCalls() - before;
    MPI_Barrier(MPI_COMM_WORLD);
    const double seconds = MPI_Wtime() - start;
    double most = 0;
    MPI_Allreduce(&mine, &most, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    if (round < 0) continue;
    rates.push_back(static_cast<double>(kEach) * g_size / seconds);
    files.push_back(most * 1e6);
    exchanges.push_back((seconds - most) * 1e6);
  }
  return {Median(rates), Median(files), Median(exchanges)};
}

// What aggregators write while data comes is in `files` alone: `exchange` is what the exchange costs on top of that.
void PrintAll(const std::string& name, int piece, const Figures& figures) {
  Print(name.c_str(), piece, figures.rate);
  Print((name + "_file").c_str(), piece, figures.files);
  Print((name + "_exchange").c_str(), piece, figures.exchange);
}

// The ranks' pieces alternate in the file.
void Strided(int piece, std::vector<char>& data) {
  File file(FileName());
  MPI_Datatype one, type;
  MPI_Type_contiguous(piece, MPI_BYTE, &one);
  MPI_Type_create_resized(one, 0, static_cast<MPI_Aint>(piece) * g_size, &type);
  MPI_Type_commit(&type);
  MPI_File_set_view(file, static_cast<MPI_Offset>(piece) * g_rank, MPI_BYTE, type, "native", MPI_INFO_NULL);
  const int bytes = static_cast<int>(data.size());
  PrintAll("write_all", piece, Time([&] { MPI_File_write_at_all(file, 0, data.data(), bytes, MPI_BYTE, MPI_STATUS_IGNORE); }));
  PrintAll("read_all", piece, Time([&] { MPI_File_read_at_all(file, 0, data.data(), bytes, MPI_BYTE, MPI_STATUS_IGNORE); }));
  MPI_Type_free(&one);
  MPI_Type_free(&type);
}

void Contiguous(std::vector<char>& data) {
  File file(FileName());
  const int bytes = static_cast<int>(data.size());
  Print("write_at", bytes, Time([&] { MPI_File_write_at(file, kEach * g_rank, data.data(), bytes, MPI_BYTE, MPI_STATUS_IGNORE); }).rate);
  Print("read_at", bytes, Time([&] { MPI_File_read_at(file, kEach * g_rank, data.data(), bytes, MPI_BYTE, MPI_STATUS_IGNORE); }).rate);
}

// Microseconds a record of 64 bytes, of all ranks at once.
void SharedPointer() {
  File file(FileName());
  char record[64] = {};
  Print("write_shared", sizeof record,
        Measure(30, [&] { MPI_File_write_shared(file, record, sizeof record, MPI_BYTE, MPI_STATUS_IGNORE); }));
}

}  // namespace

void Files() {
  std::vector<char> data(kEach, 'x');
  Strided(1 << 10, data);
  Strided(64 << 10, data);
  Contiguous(data);
  SharedPointer();
}

}  // namespace mpi_bench
