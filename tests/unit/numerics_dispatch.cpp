// The table from run-time data types and operations to C++ types, and their names.
#include <cstdint>
#include <string>
#include <type_traits>

#include "numerics/dispatch_type.hpp"
#include "support/catch.hpp"

namespace pkcomm::numerics {
namespace {

struct TypeMark {
  template <class T>
  int operator()() const {
    return static_cast<int>(10 * sizeof(T)) + 4 * kIsFloat<T> + 2 * std::is_signed_v<T> + kIsNarrowFloat<T>;
  }
};

struct OpMark {
  template <class T, class Op>
  int operator()() const {
    const int op = std::is_same_v<Op, Sum>    ? 0
                   : std::is_same_v<Op, Prod> ? 1
                   : std::is_same_v<Op, Max>  ? 2
                   : std::is_same_v<Op, Min>  ? 3
                   : std::is_same_v<Op, Avg>  ? 4
                                              : 5;
    return 100 * op + TypeMark{}.operator()<T>();
  }
};

struct NanBits {
  template <class T>
  std::uint32_t operator()() const {
    if constexpr (kIsNarrowFloat<T>) return FloatFormat<T>::kNan;
    return 0;
  }
};

struct Nothing {
  template <class T>
  void operator()() const {}
};

}  // namespace

TEST_CASE("every data type has its C++ type, its size and nccl-tests' name", "[unit][numerics]") {
  struct Row {
    pkcommDataType_t dtype;
    std::size_t size;
    const char* name;
    int mark;
  };
  const auto row = GENERATE(values<Row>({
      {pkcommInt8, 1, "int8", 12},
      {pkcommUint8, 1, "uint8", 10},
      {pkcommInt32, 4, "int32", 42},
      {pkcommUint32, 4, "uint32", 40},
      {pkcommInt64, 8, "int64", 82},
      {pkcommUint64, 8, "uint64", 80},
      {pkcommFloat16, 2, "half", 25},
      {pkcommFloat32, 4, "float", 46},
      {pkcommFloat64, 8, "double", 86},
      {pkcommBfloat16, 2, "bfloat16", 25},
      {pkcommFloat8e4m3, 1, "f8e4m3", 15},
      {pkcommFloat8e5m2, 1, "f8e5m2", 15},
  }));
  CAPTURE(row.name);
  CHECK(element_size(row.dtype) == row.size);
  CHECK(std::string(name(row.dtype)) == row.name);
  CHECK(visit_type(row.dtype, TypeMark{}) == row.mark);
  for (int kind = 0; kind < kReduceKinds; ++kind) {
    CHECK(visit_reduction(row.dtype, static_cast<ReduceKind>(kind), OpMark{}) == 100 * kind + row.mark);
  }
}

TEST_CASE("types that look alike are told apart", "[unit][numerics]") {
  CHECK(visit_type(pkcommFloat16, NanBits{}) == 0x7E00);
  CHECK(visit_type(pkcommBfloat16, NanBits{}) == 0x7FC0);
  CHECK(visit_type(pkcommFloat8e4m3, NanBits{}) == 0x7F);
  CHECK(visit_type(pkcommFloat8e5m2, NanBits{}) == 0x7E);
}

TEST_CASE("operations have names, and dynamic ones are pre-multiplied sums", "[unit][numerics]") {
  CHECK(std::string(name(reduce_kind(pkcommSum))) == "sum");
  CHECK(std::string(name(reduce_kind(pkcommProd))) == "prod");
  CHECK(std::string(name(reduce_kind(pkcommMax))) == "max");
  CHECK(std::string(name(reduce_kind(pkcommMin))) == "min");
  CHECK(std::string(name(reduce_kind(pkcommAvg))) == "avg");
  CHECK(std::string(name(reduce_kind(static_cast<pkcommRedOp_t>(5)))) == "premulsum");
  CHECK(std::string(name(reduce_kind(static_cast<pkcommRedOp_t>(4711)))) == "premulsum");
}

TEST_CASE("a value that is no data type calls nothing", "[unit][numerics]") {
  const auto unknown = static_cast<pkcommDataType_t>(PKCOMM_DATA_TYPES);
  CHECK(element_size(unknown) == 0);
  CHECK(std::string(name(unknown)) == "unknown");
  CHECK(visit_type(unknown, TypeMark{}) == 0);
  visit_type(unknown, Nothing{});
}

TEST_CASE("a multiplier travels as the bits of the accumulator", "[unit][numerics]") {
  const std::uint16_t half_three = 0x4200;
  CHECK(scalar_word(pkcommFloat16, &half_three) == 0x40400000u);  // 3.0f
  const double third = 1.0 / 3;
  CHECK(scalar_word(pkcommFloat64, &third) == bit_cast<std::uint64_t>(third));
  unsigned char unaligned[5];
  const std::int32_t minus_two = -2;
  __builtin_memcpy(unaligned + 1, &minus_two, 4);
  CHECK(scalar_word(pkcommInt32, unaligned + 1) == 0xFFFFFFFEu);
  CHECK(scalar_from_word<std::int32_t>(0xFFFFFFFEu) == -2);
  CHECK(scalar_from_word<Float8E4M3>(0x40400000u) == 3.0f);
}

}  // namespace pkcomm::numerics
