#include "mpi_hybrid/comm/communicator.h"

#include <charconv>
#include <mpi.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "mpi_hybrid/api/comm_arguments.h"
#include "mpi_hybrid/api/entry.h"
#include "mpi_hybrid/api/group_arguments.h"
#include "mpi_hybrid/coll/make_comm.h"
#include "mpi_hybrid/core/info.h"
#include "mpi_hybrid/p2p/progress.h"

// Access to communicators (MPI 4.0 sections 7.4.1, 7.4.4, 7.6.1 and 7.8); their constructors are in
// make_communicator.cc.
namespace weft::mpi {
namespace {

// MPI 4.0 section 7.4.4. None changes what we do: they are promises that we need not use.
constexpr char kStreamKey[] = "weft_stream";
constexpr int kMostStream = 65533;  // SCTP has 65,535, of which one is for answers
constexpr const char* kHints[] = {"mpi_assert_no_any_tag", "mpi_assert_no_any_source", "mpi_assert_exact_length",
                                  "mpi_assert_allow_overtaking"};

}  // namespace

Error FindComm(MPI_Comm handle, const char* argument, Comm** comm) {
  *comm = Comm::Find(handle);
  if (*comm != nullptr) [[likely]]
    return {};
  const Error error = NoSuchComm(handle);
  return Error(error.mpi_class(), std::string(argument) + ": " + error.message());
}

Error FindInfo(MPI_Info handle, Info** info) {
  *info = handle == MPI_INFO_NULL ? nullptr : Info::Find(handle);
  if (*info != nullptr || handle == MPI_INFO_NULL) return {};
  return Error(MPI_ERR_INFO, "info " + std::to_string(handle) + " is not an info object (never made, or freed)");
}

Error CheckInter(const Comm& comm) {
  if (comm.inter) [[likely]]
    return {};
  return Error(MPI_ERR_COMM, "comm is an intracommunicator, where an intercommunicator is needed");
}

void SetHints(Comm& comm, const Info* hints) {
  if (hints == nullptr) return;
  for (const char* key : kHints) {
    const std::optional<std::string> value = hints->Get(key);
    if (!value || (*value != "true" && *value != "false")) continue;
    if (!comm.info) comm.info = MakeRef<Info>();
    comm.info->Set(key, *value);
  }
}

void SetHintsOfNew(Comm& comm, const Info* hints) {
  SetHints(comm, hints);
  const std::optional<std::string> text = hints == nullptr ? std::nullopt : hints->Get(kStreamKey);
  if (!text) return;
  int stream = -1;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), stream);
  if (error != std::errc() || end != text->data() + text->size() || stream < 0 || stream > kMostStream) return;
  comm.stream = stream;
}

}  // namespace weft::mpi

using namespace weft::mpi;

int PMPI_Comm_size(MPI_Comm comm, int* size) {
  return OnComm("MPI_Comm_size", comm, [&](Comm& c) -> Error {
    WEFT_MPI_TRY(CheckNotNull(size, "size"));
    *size = c.size();
    return {};
  });
}
WEFT_MPI_ALIAS(Comm_size)

int PMPI_Comm_rank(MPI_Comm comm, int* rank) {
  return OnComm("MPI_Comm_rank", comm, [&](Comm& c) -> Error {
    WEFT_MPI_TRY(CheckNotNull(rank, "rank"));
    *rank = c.rank;
    return {};
  });
}
WEFT_MPI_ALIAS(Comm_rank)

int PMPI_Comm_compare(MPI_Comm comm1, MPI_Comm comm2, int* result) {
  return OnComm("MPI_Comm_compare", comm1, [&](Comm& a) -> Error {
    Comm* b;
    WEFT_MPI_TRY(FindComm(comm2, "comm2", &b));
    WEFT_MPI_TRY(CheckNotNull(result, "result"));
    if (&a == b) {
      *result = MPI_IDENT;
    } else if (a.inter != b->inter) {
      *result = MPI_UNEQUAL;
    } else {
      // Of the two groups' relations the weaker; identical groups make congruent communicators.
      *result = std::max({MPI_CONGRUENT, Compare(*a.local, *b->local), Compare(*a.remote, *b->remote)});
    }
    return {};
  });
}
WEFT_MPI_ALIAS(Comm_compare)

int PMPI_Comm_group(MPI_Comm comm, MPI_Group* group) {
  return OnComm("MPI_Comm_group", comm, [&](Comm& c) -> Error {
    WEFT_MPI_TRY(CheckNotNull(group, "group"));
    *group = Group::Give(c.local);
    return {};
  });
}
WEFT_MPI_ALIAS(Comm_group)

int PMPI_Comm_test_inter(MPI_Comm comm, int* flag) {
  return OnComm("MPI_Comm_test_inter", comm, [&](Comm& c) -> Error {
    WEFT_MPI_TRY(CheckNotNull(flag, "flag"));
    *flag = c.inter ? 1 : 0;
    return {};
  });
}
WEFT_MPI_ALIAS(Comm_test_inter)

int PMPI_Comm_remote_size(MPI_Comm comm, int* size) {
  return OnComm("MPI_Comm_remote_size", comm, [&](Comm& c) -> Error {
    WEFT_MPI_TRY(CheckInter(c));
    WEFT_MPI_TRY(CheckNotNull(size, "size"));
    *size = c.remote_size();
    return {};
  });
}
WEFT_MPI_ALIAS(Comm_remote_size)

int PMPI_Comm_remote_group(MPI_Comm comm, MPI_Group* group) {
  return OnComm("MPI_Comm_remote_group", comm, [&](Comm& c) -> Error {
    WEFT_MPI_TRY(CheckInter(c));
    WEFT_MPI_TRY(CheckNotNull(group, "group"));
    *group = Group::Give(c.remote);
    return {};
  });
}
WEFT_MPI_ALIAS(Comm_remote_group)

int PMPI_Comm_set_name(MPI_Comm comm, const char* comm_name) {
  return OnComm("MPI_Comm_set_name", comm, [&](Comm& c) -> Error {
    WEFT_MPI_TRY(CheckNotNull(comm_name, "comm_name"));
    c.name.assign(comm_name, strnlen(comm_name, MPI_MAX_OBJECT_NAME - 1));
    return {};
  });
}
WEFT_MPI_ALIAS(Comm_set_name)

int PMPI_Comm_get_name(MPI_Comm comm, char* comm_name, int* resultlen) {
  return OnComm("MPI_Comm_get_name", comm, [&](Comm& c) -> Error {
    WEFT_MPI_TRY(CheckNotNull(comm_name, "comm_name"));
    WEFT_MPI_TRY(CheckNotNull(resultlen, "resultlen"));
    std::memcpy(comm_name, c.name.c_str(), c.name.size() + 1);
    *resultlen = static_cast<int>(c.name.size());
    return {};
  });
}
WEFT_MPI_ALIAS(Comm_get_name)

int PMPI_Comm_set_info(MPI_Comm comm, MPI_Info info) {
  return OnComm("MPI_Comm_set_info", comm, [&](Comm& c) -> Error {
    Info* hints;
    WEFT_MPI_TRY(FindInfo(info, &hints));
    SetHints(c, hints);
    return {};
  });
}
WEFT_MPI_ALIAS(Comm_set_info)

int PMPI_Comm_get_info(MPI_Comm comm, MPI_Info* info_used) {
  return OnComm("MPI_Comm_get_info", comm, [&](Comm& c) -> Error {
    WEFT_MPI_TRY(CheckNotNull(info_used, "info_used"));
    Info& made = MakeInfo();
    for (const char* key : kHints) made.Set(key, c.info ? c.info->Get(key).value_or("false") : "false");
    if (c.stream >= 0) made.Set(kStreamKey, std::to_string(c.stream));
    *info_used = made.handle;
    return {};
  });
}
WEFT_MPI_ALIAS(Comm_get_info)

// The attributes go first; a delete function that fails leaves the communicator as it is.
int PMPI_Comm_free(MPI_Comm* comm) {
  if (comm == nullptr) return Anywhere("MPI_Comm_free", [&] { return CheckNotNull(comm, "comm"); });
  return OnComm("MPI_Comm_free", *comm, [&](Comm& c) -> Error {
    if (IsPredefined(c)) return Error(MPI_ERR_COMM, c.name + " cannot be freed");
    const Ref<Comm> alive(&c);
    WEFT_MPI_TRY(BeforeFree(c));
    WEFT_MPI_TRY(c.attributes.DeleteAll(c.handle));
    Comm::TakeBack(c);
    *comm = MPI_COMM_NULL;
    return {};
  });
}
WEFT_MPI_ALIAS(Comm_free)
