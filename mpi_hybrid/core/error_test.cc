#include "mpi_hybrid/core/error.h"

#include <gtest/gtest.h>
#include <mpi.h>

#include "mpi_hybrid/core/error_handler.h"

namespace weft::mpi {
namespace {

TEST(ErrorCodeTest, CodeKeepsTheClassAndTheMessage) {
  const int code = MakeErrorCode(Error(MPI_ERR_RANK, "rank 7 is not a rank"));
  EXPECT_NE(code, MPI_ERR_RANK);
  EXPECT_LT(code, MPI_ERR_LASTCODE);
  EXPECT_EQ(ErrorClassOf(code), MPI_ERR_RANK);
  EXPECT_NE(ErrorString(code).find("MPI_ERR_RANK"), std::string::npos);
  EXPECT_NE(ErrorString(code).find("rank 7 is not a rank"), std::string::npos);
}

TEST(ErrorCodeTest, SuccessHasCodeZero) { EXPECT_EQ(MakeErrorCode(Error()), MPI_SUCCESS); }

TEST(ErrorCodeTest, OldMessageGivesWayToThatOfItsClass) {
  const int old = MakeErrorCode(Error(MPI_ERR_TAG, "an old message"));
  for (int i = 0; i < 5000; ++i) (void)MakeErrorCode(Error(MPI_ERR_COUNT, "a newer one"));
  EXPECT_EQ(ErrorString(old), ErrorClassString(MPI_ERR_TAG));
  EXPECT_EQ(ErrorClassOf(old), MPI_ERR_TAG);
}

TEST(ErrorCodeTest, EveryClassOfMpichHasATextThatBeginsWithItsName) {
  for (int mpi_class = MPI_SUCCESS; mpi_class <= MPICH_ERR_LAST_CLASS; ++mpi_class) {
    if (mpi_class == 54) continue;  // not in use
    EXPECT_TRUE(IsErrorClass(mpi_class)) << mpi_class;
    EXPECT_EQ(std::string(ErrorClassString(mpi_class)).rfind("MPI_", 0), 0u) << mpi_class;
  }
  for (int mpi_class = MPIX_ERR_PROC_FAILED; mpi_class <= MPICH_ERR_LAST_MPIX; ++mpi_class) EXPECT_TRUE(IsErrorClass(mpi_class));
}

TEST(ErrorCodeTest, NumbersThatAreNoCodesHaveTheUnknownClass) {
  EXPECT_FALSE(IsErrorCode(-1));
  EXPECT_FALSE(IsErrorCode(MPICH_ERR_LAST_CLASS + 1));
  EXPECT_FALSE(IsErrorCode(0x40000000 + 1000000));
  EXPECT_EQ(ErrorClassOf(-1), MPI_ERR_UNKNOWN);
  EXPECT_EQ(ErrorClassOf(0x40000000 + 1000000), MPI_ERR_UNKNOWN);
}

TEST(AddedCodeTest, ClassesAndCodesRiseAboveLastUsedCode) {
  const int before = LastUsedCode();
  EXPECT_GE(before, MPI_ERR_LASTCODE);
  int own_class, code, of_standard;
  ASSERT_TRUE(AddErrorClass(&own_class).ok());
  ASSERT_TRUE(AddErrorCode(own_class, &code).ok());
  ASSERT_TRUE(AddErrorCode(MPI_ERR_OTHER, &of_standard).ok());
  EXPECT_LT(before, own_class);
  EXPECT_LT(own_class, code);
  EXPECT_EQ(LastUsedCode(), of_standard);
  EXPECT_EQ(ErrorClassOf(own_class), own_class);
  EXPECT_EQ(ErrorClassOf(code), own_class);
  EXPECT_EQ(ErrorClassOf(of_standard), MPI_ERR_OTHER);
  EXPECT_EQ(ErrorString(code), "");
  ASSERT_TRUE(AddErrorString(code, "mine").ok());
  EXPECT_EQ(ErrorString(code), "mine");
  EXPECT_EQ(MakeErrorCode(Error(own_class, "x")), own_class);

  EXPECT_FALSE(DeleteErrorClass(own_class).ok()) << "while it has codes";
  EXPECT_TRUE(DeleteErrorCode(of_standard).ok());
  EXPECT_TRUE(DeleteErrorCode(code).ok());
  EXPECT_TRUE(DeleteErrorClass(own_class).ok());
  EXPECT_EQ(LastUsedCode(), before);
  EXPECT_FALSE(IsErrorCode(code));
  EXPECT_FALSE(AddErrorString(code, "gone").ok());
}

TEST(AddedCodeTest, PredefinedCodesTakeNoStringAndUnknownClassesNoCode) {
  int code;
  EXPECT_EQ(AddErrorString(MPI_ERR_RANK, "x").mpi_class(), MPI_ERR_ARG);
  EXPECT_EQ(AddErrorCode(99, &code).mpi_class(), MPI_ERR_ARG);
}

TEST(ErrorHandlerTest, PredefinedHandlersAreFoundAndOutliveTheirReferences) {
  ErrorHandler* handler = ErrorHandler::Find(MPI_ERRORS_RETURN);
  ASSERT_EQ(handler, &ReturnErrorHandler());
  { Ref<ErrorHandler> reference(handler); }
  EXPECT_EQ(ErrorHandler::Find(MPI_ERRORS_RETURN), handler);
  EXPECT_EQ(ErrorHandler::Find(MPI_ERRORS_ARE_FATAL)->kind, ErrorHandler::Kind::kFatal);
  EXPECT_EQ(ErrorHandler::Find(MPI_ERRHANDLER_NULL), nullptr);
}

TEST(ErrorHandlerTest, HandleLivesAsLongAsAnythingHoldsIt) {
  ErrorHandler& made = MakeErrorHandler(ErrorHandler::Kind::kComm, nullptr);
  const MPI_Errhandler handle = made.handle;
  Ref<ErrorHandler> of_comm(&made);
  made.Release();  // MPI_Errhandler_free
  EXPECT_EQ(ErrorHandler::Find(handle), &made);
  of_comm = nullptr;
  EXPECT_EQ(ErrorHandler::Find(handle), nullptr);
}

}  // namespace
}  // namespace weft::mpi
