#include "mpi_hybrid/core/attributes.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

namespace weft::mpi {
namespace {

constexpr int kObject = 42;

std::string* g_log;

int CopyPlusExtra(int object, int, void* extra, void* in, void* out, int* flag) {
  *g_log += "c" + std::to_string(object);
  *static_cast<void**>(out) = static_cast<char*>(in) + reinterpret_cast<intptr_t>(extra);
  *flag = 1;
  return MPI_SUCCESS;
}

int CopyNot(int, int, void*, void*, void*, int* flag) {
  *flag = 0;
  return MPI_SUCCESS;
}

int LogDelete(int, int, void* value, void*) {
  *g_log += "d" + std::to_string(reinterpret_cast<intptr_t>(value));
  return MPI_SUCCESS;
}

int RefuseDelete(int, int, void*, void*) { return MPI_ERR_COUNT; }

void* Value(intptr_t value) { return reinterpret_cast<void*>(value); }

class AttributesTest : public testing::Test {
 protected:
  AttributesTest() : held_(&keyval_) { g_log = &log_; }
  ~AttributesTest() override {
    if (!keyval_.freed) FreeKeyval(keyval_);
  }

  std::string log_;
  Keyval& keyval_ = MakeKeyval(AttributeOwner::kComm, CopyPlusExtra, LogDelete, Value(100));
  Ref<Keyval> held_;
  Attributes attributes_;
};

TEST_F(AttributesTest, SettingAgainDeletesTheOldValue) {
  ASSERT_TRUE(attributes_.Set(kObject, keyval_, Value(1), AttributeType::kPointer).ok());
  ASSERT_TRUE(attributes_.Set(kObject, keyval_, Value(2), AttributeType::kPointer).ok());
  void* value;
  AttributeType type;
  ASSERT_TRUE(attributes_.Get(keyval_, &value, &type));
  EXPECT_EQ(value, Value(2));
  EXPECT_EQ(log_, "d1");
}

TEST_F(AttributesTest, CopyGoesThroughTheCopyFunctionAndItsFlag) {
  Keyval& not_copied = MakeKeyval(AttributeOwner::kComm, CopyNot, nullptr, nullptr);
  Keyval& null_copy = MakeKeyval(AttributeOwner::kComm, nullptr, nullptr, nullptr);
  ASSERT_TRUE(attributes_.Set(kObject, keyval_, Value(1), AttributeType::kPointer).ok());
  ASSERT_TRUE(attributes_.Set(kObject, not_copied, Value(1), AttributeType::kPointer).ok());
  ASSERT_TRUE(attributes_.Set(kObject, null_copy, Value(1), AttributeType::kPointer).ok());
  Attributes copy;
  ASSERT_TRUE(attributes_.CopyTo(kObject, &copy).ok());
  void* value;
  ASSERT_TRUE(copy.GetAs(keyval_, AttributeType::kPointer, &value));
  EXPECT_EQ(value, Value(101));
  EXPECT_FALSE(copy.GetAs(not_copied, AttributeType::kPointer, &value));
  EXPECT_FALSE(copy.GetAs(null_copy, AttributeType::kPointer, &value));
  EXPECT_EQ(log_, "c42");
  FreeKeyval(not_copied);
  FreeKeyval(null_copy);
}

TEST_F(AttributesTest, AllAreDeletedLastSetFirst) {
  Keyval& second = MakeKeyval(AttributeOwner::kComm, nullptr, LogDelete, nullptr);
  ASSERT_TRUE(attributes_.Set(kObject, keyval_, Value(1), AttributeType::kPointer).ok());
  ASSERT_TRUE(attributes_.Set(kObject, second, Value(2), AttributeType::kPointer).ok());
  ASSERT_TRUE(attributes_.DeleteAll(kObject).ok());
  EXPECT_EQ(log_, "d2d1");
  FreeKeyval(second);
}

TEST_F(AttributesTest, RefusedDeleteKeepsTheAttributeAndReturnsTheClass) {
  Keyval& stubborn = MakeKeyval(AttributeOwner::kComm, nullptr, RefuseDelete, nullptr);
  ASSERT_TRUE(attributes_.Set(kObject, stubborn, Value(1), AttributeType::kPointer).ok());
  EXPECT_EQ(attributes_.Delete(kObject, stubborn).mpi_class(), MPI_ERR_COUNT);
  EXPECT_EQ(attributes_.DeleteAll(kObject).mpi_class(), MPI_ERR_COUNT);
  void* value;
  EXPECT_TRUE(attributes_.GetAs(stubborn, AttributeType::kPointer, &value));
  FreeKeyval(stubborn);
}

TEST_F(AttributesTest, DeletingWhatIsNotSetIsAKeyvalError) {
  EXPECT_EQ(attributes_.Delete(kObject, keyval_).mpi_class(), MPI_ERR_KEYVAL);
}

TEST_F(AttributesTest, CSeesTheAddressOfWhatFortranStoredAndFortranThePointerOfC) {
  Keyval& other = MakeKeyval(AttributeOwner::kComm, nullptr, nullptr, nullptr);
  ASSERT_TRUE(attributes_.Set(kObject, keyval_, Value(-5), AttributeType::kInt).ok());
  ASSERT_TRUE(attributes_.Set(kObject, other, Value(77), AttributeType::kPointer).ok());
  void* value;
  ASSERT_TRUE(attributes_.GetAs(keyval_, AttributeType::kPointer, &value));
  EXPECT_EQ(*static_cast<int*>(value), -5);
  ASSERT_TRUE(attributes_.GetAs(keyval_, AttributeType::kInt, &value));
  EXPECT_EQ(value, Value(-5));
  ASSERT_TRUE(attributes_.GetAs(other, AttributeType::kAint, &value));
  EXPECT_EQ(value, Value(77));
  FreeKeyval(other);
}

TEST_F(AttributesTest, DupFunctionCopiesAFortranIntegerAsItIs) {
  Keyval& dup = MakeKeyval(AttributeOwner::kComm, MPIR_Dup_fn, nullptr, nullptr);
  ASSERT_TRUE(attributes_.Set(kObject, dup, Value(9), AttributeType::kInt).ok());
  Attributes copy;
  ASSERT_TRUE(attributes_.CopyTo(kObject, &copy).ok());
  void* value;
  AttributeType type;
  ASSERT_TRUE(copy.Get(dup, &value, &type));
  EXPECT_EQ(value, Value(9));
  EXPECT_EQ(type, AttributeType::kInt);
  FreeKeyval(dup);
}

TEST_F(AttributesTest, FreedKeyvalIsFoundUntilItsLastAttributeIsDeleted) {
  Keyval& freed = MakeKeyval(AttributeOwner::kComm, nullptr, LogDelete, nullptr);
  const int handle = freed.handle;
  ASSERT_TRUE(attributes_.Set(kObject, freed, Value(3), AttributeType::kPointer).ok());
  FreeKeyval(freed);
  ASSERT_EQ(Keyval::Find(handle), &freed);
  ASSERT_TRUE(attributes_.Delete(kObject, freed).ok());
  EXPECT_EQ(log_, "d3");
  EXPECT_EQ(Keyval::Find(handle), nullptr);
}

TEST_F(AttributesTest, KeyvalFreedTwiceKeepsItsAttribute) {
  Keyval& freed = MakeKeyval(AttributeOwner::kComm, nullptr, LogDelete, nullptr);
  ASSERT_TRUE(attributes_.Set(kObject, freed, Value(3), AttributeType::kPointer).ok());
  FreeKeyval(freed);
  FreeKeyval(freed);
  void* value;
  ASSERT_TRUE(attributes_.GetAs(freed, AttributeType::kPointer, &value));
  EXPECT_EQ(value, Value(3));
  ASSERT_TRUE(attributes_.DeleteAll(kObject).ok());
  EXPECT_EQ(log_, "d3");
}

Attributes* g_own;
Keyval* g_other;
int DeleteOnceMore(int object, int, void*, void*) {
  Keyval* const mine = std::exchange(g_other, nullptr);
  EXPECT_TRUE(mine == nullptr || g_own->Delete(object, *mine).ok());
  return MPI_SUCCESS;
}

TEST_F(AttributesTest, DeleteFunctionMayDeleteTheAttributeThatKeptAFreedKeyval) {
  Keyval& freed = MakeKeyval(AttributeOwner::kComm, nullptr, DeleteOnceMore, nullptr);
  g_own = &attributes_;
  g_other = &freed;
  ASSERT_TRUE(attributes_.Set(kObject, freed, Value(1), AttributeType::kPointer).ok());
  FreeKeyval(freed);
  EXPECT_TRUE(attributes_.Delete(kObject, freed).ok());
}

int DeleteAnother(int object, int, void*, void*) {
  (void)g_own->Delete(object, *g_other);
  return MPI_SUCCESS;
}

TEST_F(AttributesTest, DeleteFunctionMayDeleteOtherAttributesOfTheSameObject) {
  Keyval& eager = MakeKeyval(AttributeOwner::kComm, nullptr, DeleteAnother, nullptr);
  g_own = &attributes_;
  g_other = &keyval_;
  ASSERT_TRUE(attributes_.Set(kObject, keyval_, Value(1), AttributeType::kPointer).ok());
  ASSERT_TRUE(attributes_.Set(kObject, eager, Value(2), AttributeType::kPointer).ok());
  ASSERT_TRUE(attributes_.DeleteAll(kObject).ok());
  EXPECT_EQ(log_, "d1");
  FreeKeyval(eager);
}

}  // namespace
}  // namespace weft::mpi
