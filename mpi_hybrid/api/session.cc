#include <string>

#include "mpi_hybrid/api/entry.h"
#include "mpi_hybrid/api/report.h"

// Sessions (MPI 4.0 section 11.3). Weft has none yet: MPI_Session_init says so to the error handler that it is given, and so no
// handle of a session is ever right.
namespace weft::mpi {
namespace {

int OnSession(const char* name, MPI_Session session) {
  LockGuard lock;
  const bool null = session == MPI_SESSION_NULL;
  return ReportAnywhere(
      name, Error(MPI_ERR_SESSION, null ? "session is MPI_SESSION_NULL"
                                        : "session " + std::to_string(session) + " is not a session: Weft has none yet"));
}

}  // namespace
}  // namespace weft::mpi

using namespace weft::mpi;

int PMPI_Session_init(MPI_Info, MPI_Errhandler errhandler, MPI_Session* session) {
  LockGuard lock;
  static constexpr char kName[] = "MPI_Session_init";
  if (session != nullptr) *session = MPI_SESSION_NULL;
  const Error error(MPI_ERR_UNSUPPORTED_OPERATION, "Weft has no sessions yet; MPI_Init starts it");
  const ErrorHandler* handler = ErrorHandler::Find(errhandler);
  if (handler == nullptr) return ReportAnywhere(kName, Error(MPI_ERR_ARG, "errhandler is not an error handler"));
  const Ref<const ErrorHandler> held(handler);
  int null = MPI_SESSION_NULL;
  return CallHandler(kName, handler, ErrorHandler::Kind::kSession, &null, error);
}
WEFT_MPI_ALIAS(Session_init)

int PMPI_Session_finalize(MPI_Session* session) {
  return OnSession("MPI_Session_finalize", session != nullptr ? *session : MPI_SESSION_NULL);
}
WEFT_MPI_ALIAS(Session_finalize)

int PMPI_Session_get_info(MPI_Session session, MPI_Info*) { return OnSession("MPI_Session_get_info", session); }
WEFT_MPI_ALIAS(Session_get_info)

int PMPI_Session_get_num_psets(MPI_Session session, MPI_Info, int*) { return OnSession("MPI_Session_get_num_psets", session); }
WEFT_MPI_ALIAS(Session_get_num_psets)

int PMPI_Session_get_nth_pset(MPI_Session session, MPI_Info, int, int*, char*) {
  return OnSession("MPI_Session_get_nth_pset", session);
}
WEFT_MPI_ALIAS(Session_get_nth_pset)

int PMPI_Session_get_pset_info(MPI_Session session, const char*, MPI_Info*) {
  return OnSession("MPI_Session_get_pset_info", session);
}
WEFT_MPI_ALIAS(Session_get_pset_info)

int PMPI_Session_call_errhandler(MPI_Session session, int) { return OnSession("MPI_Session_call_errhandler", session); }
WEFT_MPI_ALIAS(Session_call_errhandler)

int PMPI_Session_get_errhandler(MPI_Session session, MPI_Errhandler*) { return OnSession("MPI_Session_get_errhandler", session); }
WEFT_MPI_ALIAS(Session_get_errhandler)

int PMPI_Session_set_errhandler(MPI_Session session, MPI_Errhandler) { return OnSession("MPI_Session_set_errhandler", session); }
WEFT_MPI_ALIAS(Session_set_errhandler)

int PMPI_Group_from_session_pset(MPI_Session session, const char*, MPI_Group* newgroup) {
  if (newgroup != nullptr) *newgroup = MPI_GROUP_NULL;
  return OnSession("MPI_Group_from_session_pset", session);
}
WEFT_MPI_ALIAS(Group_from_session_pset)
