#include "mpi_hybrid/api/entry.h"
#include "mpi_hybrid/coll/spanning.h"
#include "mpi_hybrid/survive/failures.h"
#include "mpi_hybrid/survive/recover.h"

// Ranks die and the others go on: MPICH's names for what the MPI Forum's working group on fault tolerance calls User Level Failure
// Mitigation.
using namespace weft::mpi;

int PMPIX_Comm_failure_ack(MPI_Comm comm) {
  return OnComm("MPIX_Comm_failure_ack", comm, [&](Comm& c) -> Error {
    survive::Acknowledge(c);
    return {};
  });
}
WEFT_MPIX_ALIAS(Comm_failure_ack)

int PMPIX_Comm_failure_get_acked(MPI_Comm comm, MPI_Group* failedgrp) {
  return OnComm("MPIX_Comm_failure_get_acked", comm, [&](Comm& c) -> Error {
    WEFT_MPI_TRY(CheckNotNull(failedgrp, "failedgrp"));
    *failedgrp = Group::Give(survive::Acknowledged(c));
    return {};
  });
}
WEFT_MPIX_ALIAS(Comm_failure_get_acked)

int PMPIX_Comm_agree(MPI_Comm comm, int* flag) {
  return OnComm("MPIX_Comm_agree", comm, [&](Comm& c) -> Error {
    WEFT_MPI_TRY(CheckNotNull(flag, "flag"));
    WEFT_MPI_TRY(CheckWithinClient(c, "agreements"));
    return survive::AgreeOn(c, flag);
  });
}
WEFT_MPIX_ALIAS(Comm_agree)

int PMPIX_Comm_shrink(MPI_Comm comm, MPI_Comm* newcomm) {
  return OnComm("MPIX_Comm_shrink", comm, [&](Comm& c) -> Error {
    WEFT_MPI_TRY(CheckNotNull(newcomm, "newcomm"));
    *newcomm = MPI_COMM_NULL;
    WEFT_MPI_TRY(CheckWithinClient(c, "survivors"));
    Ref<Comm> made;
    WEFT_MPI_TRY(survive::Shrink(c, &made));
    *newcomm = Comm::Give(made);
    return {};
  });
}
WEFT_MPIX_ALIAS(Comm_shrink)

int PMPIX_Comm_revoke(MPI_Comm comm) {
  return OnComm("MPIX_Comm_revoke", comm, [&](Comm& c) -> Error {
    WEFT_MPI_TRY(CheckWithinClient(c, "revocations"));
    survive::Revoke(c);
    return {};
  });
}
WEFT_MPIX_ALIAS(Comm_revoke)
