#include <cstdint>

#include "mpi_hybrid/api/entry.h"

// MPI_File handles: Weft has no MPI-IO, so the only one is MPI_FILE_NULL.
MPI_Fint PMPI_File_c2f(MPI_File) { return 0; }
WEFT_MPI_ALIAS(File_c2f)

MPI_File PMPI_File_f2c(MPI_Fint) { return MPI_FILE_NULL; }
WEFT_MPI_ALIAS(File_f2c)
