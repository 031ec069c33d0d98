// Element types and reduction operations by the names that nccl-tests prints and accepts, with aliases for
// what people type. Pure tables; the values are those of the public header.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

#include "pkcomm/pkcomm.h"
#include "result.hpp"

namespace pkcomm::perf {

struct DataType {
  pkcommDataType_t value;
  std::string_view name;
  std::string_view aliases;  // separated and surrounded by blanks
  std::size_t bytes;
  bool is_float;
  bool is_signed;
};

inline constexpr std::array kDataTypes = {
    DataType{pkcommInt8, "int8", " i8 char ", 1, false, true},
    DataType{pkcommUint8, "uint8", " u8 byte ", 1, false, false},
    DataType{pkcommInt32, "int32", " i32 int ", 4, false, true},
    DataType{pkcommUint32, "uint32", " u32 ", 4, false, false},
    DataType{pkcommInt64, "int64", " i64 ", 8, false, true},
    DataType{pkcommUint64, "uint64", " u64 ", 8, false, false},
    DataType{pkcommFloat16, "half", " float16 fp16 f16 ", 2, true, true},
    DataType{pkcommFloat32, "float", " float32 fp32 f32 ", 4, true, true},
    DataType{pkcommFloat64, "double", " float64 fp64 f64 ", 8, true, true},
    DataType{pkcommBfloat16, "bfloat16", " bf16 ", 2, true, true},
    DataType{pkcommFloat8e4m3, "f8e4m3", " fp8e4m3 float8e4m3 fp8_e4m3 ", 1, true, true},
    DataType{pkcommFloat8e5m2, "f8e5m2", " fp8e5m2 float8e5m2 fp8_e5m2 ", 1, true, true},
};
static_assert(kDataTypes.size() == PKCOMM_DATA_TYPES);

inline const DataType& describe(pkcommDataType_t type) { return kDataTypes[static_cast<std::size_t>(type)]; }

/// Operations; kMulSum is made for each communicator, so it has no fixed value in the library.
enum class Op { kSum, kProd, kMax, kMin, kAvg, kMulSum };
inline constexpr std::array<std::string_view, 6> kOpNames = {"sum", "prod", "max", "min", "avg", "mulsum"};
inline std::string_view name(Op op) { return kOpNames[static_cast<std::size_t>(op)]; }

inline Result<pkcommDataType_t> find_type(std::string_view text) {
  std::string known;
  for (const DataType& type : kDataTypes) {
    if (text == type.name) return type.value;
    const bool alias = !text.empty() && text.find(' ') == std::string_view::npos &&
                       type.aliases.find(" " + std::string(text) + " ") != std::string_view::npos;
    if (alias) return type.value;
    known += (known.empty() ? "" : ", ") + std::string(type.name);
  }
  return Error{"'" + std::string(text) + "' is no type; known are " + known + " and all"};
}

inline Result<Op> find_op(std::string_view text) {
  for (std::size_t i = 0; i < kOpNames.size(); ++i) {
    if (text == kOpNames[i]) return static_cast<Op>(i);
  }
  return Error{"'" + std::string(text) +
               "' is no operation; known are sum, prod, min, max, avg, mulsum and all"};
}

}  // namespace pkcomm::perf
