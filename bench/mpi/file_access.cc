#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

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

// Bytes a second of all ranks together; the median of some rounds after one to warm up.
template <typename Once>
double Bandwidth(Once once) {
  std::vector<double> rates;
  for (int round = -1; round < (g_quick ? 3 : 9); round++) {
    MPI_Barrier(MPI_COMM_WORLD);
    const double start = MPI_Wtime();
    once();
    MPI_Barrier(MPI_COMM_WORLD);
    const double seconds = MPI_Wtime() - start;
    if (round >= 0) rates.push_back(static_cast<double>(kEach) * g_size / seconds);
  }
  return Median(rates);
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
  Print("write_all", piece, Bandwidth([&] { MPI_File_write_at_all(file, 0, data.data(), bytes, MPI_BYTE, MPI_STATUS_IGNORE); }));
  Print("read_all", piece, Bandwidth([&] { MPI_File_read_at_all(file, 0, data.data(), bytes, MPI_BYTE, MPI_STATUS_IGNORE); }));
  MPI_Type_free(&one);
  MPI_Type_free(&type);
}

void Contiguous(std::vector<char>& data) {
  File file(FileName());
  const int bytes = static_cast<int>(data.size());
  Print("write_at", bytes, Bandwidth([&] { MPI_File_write_at(file, kEach * g_rank, data.data(), bytes, MPI_BYTE, MPI_STATUS_IGNORE); }));
  Print("read_at", bytes, Bandwidth([&] { MPI_File_read_at(file, kEach * g_rank, data.data(), bytes, MPI_BYTE, MPI_STATUS_IGNORE); }));
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
