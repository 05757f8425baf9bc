#include <strings.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>

#include "mpi_hybrid/api/comm_arguments.h"
#include "mpi_hybrid/api/entry.h"
#include "mpi_hybrid/api/group_arguments.h"
#include "mpi_hybrid/api/library.h"
#include "mpi_hybrid/api/report.h"
#include "mpi_hybrid/coll/make_comm.h"
#include "mpi_hybrid/core/job.h"

// Sessions (MPI 4.0 section 11.3), and communicators of groups (section 7.4.2).
namespace weft::mpi {
namespace {

constexpr const char* kSets[] = {"mpi://WORLD", "mpi://SELF"};
// By MPI_THREAD_SINGLE (0) to MPI_THREAD_MULTIPLE (3).
constexpr const char* kLevels[] = {"MPI_THREAD_SINGLE", "MPI_THREAD_FUNNELED", "MPI_THREAD_SERIALIZED",
                                   "MPI_THREAD_MULTIPLE"};

struct Session : RefCounted<Session> {
  MPI_Session handle = MPI_SESSION_NULL;
  Ref<ErrorHandler> error_handler;
};

// Never destroyed: handles may be looked up while the program's static objects end.
HandleTable<Session>& Table() {
  static auto& table = *new HandleTable<Session>(HandleKind::kSession);
  return table;
}

Error NoSuchSession(MPI_Session handle) {
  if (handle == MPI_SESSION_NULL) return Error(MPI_ERR_SESSION, "session is MPI_SESSION_NULL");
  return Error(MPI_ERR_SESSION, "session " + std::to_string(handle) + " is not a session (never made, or finalized)");
}

template <typename Body>
int InSession(const char* name, MPI_Session handle, Body body) {
  LockGuard lock;
  Session* session = Table().Find(handle);
  if (session == nullptr) return ReportAnywhere(name, NoSuchSession(handle));
  const Ref<Session> alive(session);
  const Error error = body(*session);
  if (error.ok()) return MPI_SUCCESS;
  int object = handle;
  return CallHandler(name, session->error_handler.get(), ErrorHandler::Kind::kSession, &object, error);
}

// Errors of what makes an object go to the handler that the object is to have.
template <typename Body>
int WithHandler(const char* name, MPI_Errhandler handle, ErrorHandler::Kind kind, int null, Body body) {
  LockGuard lock;
  ErrorHandler* handler = ErrorHandler::Find(handle);
  if (handler == nullptr) return ReportAnywhere(name, Error(MPI_ERR_ARG, "errhandler is not an error handler"));
  const Ref<ErrorHandler> held(handler);
  const Error error = body(held);
  if (error.ok()) return MPI_SUCCESS;
  return CallHandler(name, held.get(), kind, &null, error);
}

Error ReadThreadLevel(const Info* info, int* level) {
  *level = MPI_THREAD_SINGLE;
  const auto wanted = info == nullptr ? std::nullopt : info->Get("thread_level");
  if (!wanted) return {};
  const auto found = std::find(std::begin(kLevels), std::end(kLevels), *wanted);
  if (found == std::end(kLevels))
    return Error(MPI_ERR_INFO_VALUE, "thread_level '" + *wanted + "' is not the name of a level, such as MPI_THREAD_MULTIPLE");
  *level = static_cast<int>(found - std::begin(kLevels));
  return {};
}

Error FindSet(const char* name, Ref<Group>* group) {
  WEFT_MPI_TRY(CheckNotNull(name, "pset_name"));
  if (strcasecmp(name, kSets[0]) == 0) *group = World().local;
  if (strcasecmp(name, kSets[1]) == 0) *group = Self().local;
  if (*group) return {};
  return Error(MPI_ERR_ARG, "pset_name '" + std::string(name) + "' is not a process set (there are mpi://WORLD and mpi://SELF)");
}

Error ReadTag(const char* text, std::string_view* tag) {
  WEFT_MPI_TRY(CheckNotNull(text, "stringtag"));
  *tag = std::string_view(text, strnlen(text, MPI_MAX_STRINGTAG_LEN));
  if (tag->size() < MPI_MAX_STRINGTAG_LEN) return {};
  return Error(MPI_ERR_ARG, "stringtag has more than " + std::to_string(MPI_MAX_STRINGTAG_LEN - 1) + " characters");
}

Error CheckHasSelf(const Group& group, const char* argument) {
  if (group.RankOf(ThisJob().processes.self()) != MPI_UNDEFINED) return {};
  return Error(MPI_ERR_GROUP, "this process is not in " + std::string(argument));
}

Error CheckLeader(const Group& group, int rank, const char* argument) {
  if (rank >= 0 && rank < group.size()) return {};
  return Error(MPI_ERR_RANK, std::string(argument) + " " + std::to_string(rank) + " is not a rank of its group (0 to " +
                                 std::to_string(group.size() - 1) + ")");
}

Error GiveNewInfo(MPI_Info* info, const char* key, const std::string& value) {
  WEFT_MPI_TRY(CheckNotNull(info, "info"));
  Info& made = MakeInfo();
  made.Set(key, value);
  *info = made.handle;
  return {};
}

}  // namespace
}  // namespace weft::mpi

using namespace weft::mpi;

int PMPI_Session_init(MPI_Info info, MPI_Errhandler errhandler, MPI_Session* session) {
  return WithHandler("MPI_Session_init", errhandler, ErrorHandler::Kind::kSession, MPI_SESSION_NULL,
                     [&](const Ref<ErrorHandler>& handler) -> Error {
                       WEFT_MPI_TRY(CheckNotNull(session, "session"));
                       *session = MPI_SESSION_NULL;
                       Info* hints;
                       WEFT_MPI_TRY(FindInfo(info, &hints));
                       int level;
                       WEFT_MPI_TRY(ReadThreadLevel(hints, &level));
                       WEFT_MPI_TRY(UseLibrary());
                       LibraryLock::GrantLevel(level);
                       Ref<Session> made = MakeRef<Session>();
                       made->error_handler = handler;
                       made->handle = Table().Add(made.get());
                       made->AddRef();
                       *session = made->handle;
                       return {};
                     });
}
WEFT_MPI_ALIAS(Session_init)

int PMPI_Session_finalize(MPI_Session* session) {
  return InSession("MPI_Session_finalize", session != nullptr ? *session : MPI_SESSION_NULL, [&](Session& s) -> Error {
    Table().Remove(s.handle);
    s.Release();
    *session = MPI_SESSION_NULL;
    return StopUsingLibrary(/*by_all=*/false);
  });
}
WEFT_MPI_ALIAS(Session_finalize)

int PMPI_Session_get_info(MPI_Session session, MPI_Info* info_used) {
  return InSession("MPI_Session_get_info", session,
                   [&](Session&) { return GiveNewInfo(info_used, "thread_level", kLevels[LibraryLock::level()]); });
}
WEFT_MPI_ALIAS(Session_get_info)

int PMPI_Session_get_num_psets(MPI_Session session, MPI_Info, int* npset_names) {
  return InSession("MPI_Session_get_num_psets", session, [&](Session&) -> Error {
    WEFT_MPI_TRY(CheckNotNull(npset_names, "npset_names"));
    *npset_names = std::size(kSets);
    return {};
  });
}
WEFT_MPI_ALIAS(Session_get_num_psets)

int PMPI_Session_get_nth_pset(MPI_Session session, MPI_Info, int n, int* pset_len, char* pset_name) {
  return InSession("MPI_Session_get_nth_pset", session, [&](Session&) -> Error {
    WEFT_MPI_TRY(CheckNotNull(pset_len, "pset_len"));
    if (n < 0 || n >= static_cast<int>(std::size(kSets)))
      return Error(MPI_ERR_ARG, "n " + std::to_string(n) + " is not the number of a process set (0 to " +
                                    std::to_string(std::size(kSets) - 1) + ")");
    const std::string_view name = kSets[n];
    const int room = std::exchange(*pset_len, static_cast<int>(name.size()) + 1);
    if (room <= 0) return {};
    WEFT_MPI_TRY(CheckNotNull(pset_name, "pset_name"));
    const size_t length = std::min(name.size(), static_cast<size_t>(room) - 1);
    std::memcpy(pset_name, name.data(), length);
    pset_name[length] = 0;
    return {};
  });
}
WEFT_MPI_ALIAS(Session_get_nth_pset)

int PMPI_Session_get_pset_info(MPI_Session session, const char* pset_name, MPI_Info* info) {
  return InSession("MPI_Session_get_pset_info", session, [&](Session&) -> Error {
    Ref<Group> group;
    WEFT_MPI_TRY(FindSet(pset_name, &group));
    return GiveNewInfo(info, "mpi_size", std::to_string(group->size()));
  });
}
WEFT_MPI_ALIAS(Session_get_pset_info)

int PMPI_Session_call_errhandler(MPI_Session session, int errorcode) {
  static constexpr char kName[] = "MPI_Session_call_errhandler";
  return InSession(kName, session, [&](Session& s) -> Error {
    if (!IsErrorCode(errorcode)) return Error(MPI_ERR_ARG, "errorcode " + std::to_string(errorcode) + " is not an error code");
    const Ref<ErrorHandler> handler = s.error_handler;
    int object = s.handle;
    CallHandlerWithCode(kName, handler.get(), ErrorHandler::Kind::kSession, &object, errorcode);
    return {};
  });
}
WEFT_MPI_ALIAS(Session_call_errhandler)

int PMPI_Session_get_errhandler(MPI_Session session, MPI_Errhandler* errhandler) {
  return InSession("MPI_Session_get_errhandler", session, [&](Session& s) -> Error {
    WEFT_MPI_TRY(CheckNotNull(errhandler, "errhandler"));
    s.error_handler->AddRef();  // the program frees what it got
    *errhandler = s.error_handler->handle;
    return {};
  });
}
WEFT_MPI_ALIAS(Session_get_errhandler)

int PMPI_Session_set_errhandler(MPI_Session session, MPI_Errhandler errhandler) {
  return InSession("MPI_Session_set_errhandler", session, [&](Session& s) -> Error {
    ErrorHandler* handler = ErrorHandler::Find(errhandler);
    if (handler == nullptr) return Error(MPI_ERR_ARG, "errhandler is not an error handler");
    s.error_handler = Ref<ErrorHandler>(handler);
    return {};
  });
}
WEFT_MPI_ALIAS(Session_set_errhandler)

int PMPI_Group_from_session_pset(MPI_Session session, const char* pset_name, MPI_Group* newgroup) {
  return InSession("MPI_Group_from_session_pset", session, [&](Session&) -> Error {
    WEFT_MPI_TRY(CheckNotNull(newgroup, "newgroup"));
    *newgroup = MPI_GROUP_NULL;
    Ref<Group> group;
    WEFT_MPI_TRY(FindSet(pset_name, &group));
    *newgroup = Group::Give(group);
    return {};
  });
}
WEFT_MPI_ALIAS(Group_from_session_pset)

int PMPI_Comm_create_from_group(MPI_Group group, const char* stringtag, MPI_Info info, MPI_Errhandler errhandler,
                                MPI_Comm* newcomm) {
  static constexpr char kName[] = "MPI_Comm_create_from_group";
  if (g_library_state != LibraryState::kRunning) NotRunning(kName);
  return WithHandler(kName, errhandler, ErrorHandler::Kind::kComm, MPI_COMM_NULL,
                     [&](const Ref<ErrorHandler>& handler) -> Error {
                       WEFT_MPI_TRY(CheckNotNull(newcomm, "newcomm"));
                       *newcomm = MPI_COMM_NULL;
                       Group* members;
                       Info* hints;
                       std::string_view tag;
                       WEFT_MPI_TRY(FindGroup(group, "group", &members));
                       WEFT_MPI_TRY(FindInfo(info, &hints));
                       WEFT_MPI_TRY(ReadTag(stringtag, &tag));
                       if (members->size() == 0) return {};
                       WEFT_MPI_TRY(CheckHasSelf(*members, "group"));
                       Ref<Comm> made;
                       WEFT_MPI_TRY(CreateOfGroup(Ref<Group>(members), tag, handler, &made));
                       SetHintsOfNew(*made, hints);
                       *newcomm = Comm::Give(made);
                       return {};
                     });
}
WEFT_MPI_ALIAS(Comm_create_from_group)

int PMPI_Intercomm_create_from_groups(MPI_Group local_group, int local_leader, MPI_Group remote_group, int remote_leader,
                                      const char* stringtag, MPI_Info info, MPI_Errhandler errhandler,
                                      MPI_Comm* newintercomm) {
  static constexpr char kName[] = "MPI_Intercomm_create_from_groups";
  if (g_library_state != LibraryState::kRunning) NotRunning(kName);
  return WithHandler(
      kName, errhandler, ErrorHandler::Kind::kComm, MPI_COMM_NULL, [&](const Ref<ErrorHandler>& handler) -> Error {
        WEFT_MPI_TRY(CheckNotNull(newintercomm, "newintercomm"));
        *newintercomm = MPI_COMM_NULL;
        Group *local, *remote = nullptr;
        Info* hints;
        std::string_view tag;
        WEFT_MPI_TRY(FindGroup(local_group, "local_group", &local));
        WEFT_MPI_TRY(FindInfo(info, &hints));
        WEFT_MPI_TRY(ReadTag(stringtag, &tag));
        WEFT_MPI_TRY(CheckHasSelf(*local, "local_group"));
        WEFT_MPI_TRY(CheckLeader(*local, local_leader, "local_leader"));
        // The local leader alone knows the others, and tells its group when they are wrong.
        Error refusal;
        if (local->RankOf(ThisJob().processes.self()) == local_leader) {
          refusal = FindGroup(remote_group, "remote_group", &remote);
          if (refusal.ok()) refusal = CheckLeader(*remote, remote_leader, "remote_leader");
          if (refusal.ok() && local->RankOf(remote->members[static_cast<size_t>(remote_leader)]) != MPI_UNDEFINED)
            refusal = Error(MPI_ERR_GROUP, "the groups overlap: remote_leader is in local_group too");
        }
        const Ref<Group> known(remote);
        Ref<Comm> made;
        WEFT_MPI_TRY(CreateInterOfGroups(Ref<Group>(local), local_leader, known.get(), remote_leader, tag, handler, &made, refusal));
        SetHintsOfNew(*made, hints);
        *newintercomm = Comm::Give(made);
        return {};
      });
}
WEFT_MPI_ALIAS(Intercomm_create_from_groups)
