// From the run-time (data type, operation) of a call to template arguments, and their names: the only list of
// which C++ type stands for which pkcommDataType_t. Names are those that nccl-tests prints. A value outside
// the enumeration is answered with a value-initialised result and calls nothing; validation belongs to the
// API.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/host_device.hpp"
#include "numerics/arithmetic.hpp"
#include "numerics/float_formats.hpp"
#include "numerics/fold.hpp"
#include "pkcomm/pkcomm.h"

namespace pkcomm::numerics {

/// The operations as numerics knows them: pkcommRedOp_t's values, and one for all pre-multiplied sums.
enum class ReduceKind { kSum, kProd, kMax, kMin, kAvg, kPreMulSum };
inline constexpr int kReduceKinds = 6;

/// `op` as the API takes it: built in, or from pkcommRedOpCreatePreMulSum.
constexpr ReduceKind reduce_kind(pkcommRedOp_t op) {
  return op < PKCOMM_BUILTIN_OPS ? static_cast<ReduceKind>(op) : ReduceKind::kPreMulSum;
}

/// Calls `function.template operator()<T>()` with the element type of `dtype`.
PK_HD_POLICY
template <class F>
PK_HD constexpr auto visit_type(pkcommDataType_t dtype, F function)
    -> decltype(function.template operator()<float>()) {
  switch (dtype) {
    case pkcommInt8:
      return function.template operator()<std::int8_t>();
    case pkcommUint8:
      return function.template operator()<std::uint8_t>();
    case pkcommInt32:
      return function.template operator()<std::int32_t>();
    case pkcommUint32:
      return function.template operator()<std::uint32_t>();
    case pkcommInt64:
      return function.template operator()<std::int64_t>();
    case pkcommUint64:
      return function.template operator()<std::uint64_t>();
    case pkcommFloat16:
      return function.template operator()<Float16>();
    case pkcommFloat32:
      return function.template operator()<float>();
    case pkcommFloat64:
      return function.template operator()<double>();
    case pkcommBfloat16:
      return function.template operator()<Bfloat16>();
    case pkcommFloat8e4m3:
      return function.template operator()<Float8E4M3>();
    case pkcommFloat8e5m2:
      return function.template operator()<Float8E5M2>();
  }
  return decltype(function.template operator()<float>())();
}

namespace detail {

// Binds the operation, so that visit_type can add the type.
template <class Op, class F>
struct WithOp {
  F& function;
  PK_HD_POLICY
  template <class T>
  PK_HD constexpr auto operator()() const {
    return function.template operator()<T, Op>();
  }
};

}  // namespace detail

/// Calls `function.template operator()<T, Op>()` with the element type of `dtype` and the tag (fold.hpp) of
/// `kind`.
PK_HD_POLICY
template <class F>
PK_HD constexpr auto visit_reduction(pkcommDataType_t dtype, ReduceKind kind, F function)
    -> decltype(function.template operator()<float, Sum>()) {
  switch (kind) {
    case ReduceKind::kSum:
      return visit_type(dtype, detail::WithOp<Sum, F>{function});
    case ReduceKind::kProd:
      return visit_type(dtype, detail::WithOp<Prod, F>{function});
    case ReduceKind::kMax:
      return visit_type(dtype, detail::WithOp<Max, F>{function});
    case ReduceKind::kMin:
      return visit_type(dtype, detail::WithOp<Min, F>{function});
    case ReduceKind::kAvg:
      return visit_type(dtype, detail::WithOp<Avg, F>{function});
    case ReduceKind::kPreMulSum:
      return visit_type(dtype, detail::WithOp<PreMulSum, F>{function});
  }
  return decltype(function.template operator()<float, Sum>())();
}

namespace detail {

struct SizeOf {
  template <class T>
  PK_HD constexpr std::size_t operator()() const {
    return sizeof(T);
  }
};
struct ScalarWordOf {
  const void* element;
  template <class T>
  PK_HD std::uint64_t operator()() const {
    T value;
    __builtin_memcpy(&value, element, sizeof(T));
    return scalar_word(value);
  }
};

}  // namespace detail

/// Bytes of an element; 0 for an unknown type.
PK_HD constexpr std::size_t element_size(pkcommDataType_t dtype) {
  return visit_type(dtype, detail::SizeOf{});
}

/// The pre-multiplier at `element`, one element of type `dtype` at any alignment, as the word that travels.
PK_HD inline std::uint64_t scalar_word(pkcommDataType_t dtype, const void* element) {
  return visit_type(dtype, detail::ScalarWordOf{element});
}

constexpr const char* name(pkcommDataType_t dtype) {
  switch (dtype) {
    case pkcommInt8:
      return "int8";
    case pkcommUint8:
      return "uint8";
    case pkcommInt32:
      return "int32";
    case pkcommUint32:
      return "uint32";
    case pkcommInt64:
      return "int64";
    case pkcommUint64:
      return "uint64";
    case pkcommFloat16:
      return "half";
    case pkcommFloat32:
      return "float";
    case pkcommFloat64:
      return "double";
    case pkcommBfloat16:
      return "bfloat16";
    case pkcommFloat8e4m3:
      return "f8e4m3";
    case pkcommFloat8e5m2:
      return "f8e5m2";
  }
  return "unknown";
}

constexpr const char* name(ReduceKind kind) {
  switch (kind) {
    case ReduceKind::kSum:
      return "sum";
    case ReduceKind::kProd:
      return "prod";
    case ReduceKind::kMax:
      return "max";
    case ReduceKind::kMin:
      return "min";
    case ReduceKind::kAvg:
      return "avg";
    case ReduceKind::kPreMulSum:
      return "premulsum";
  }
  return "unknown";
}

}  // namespace pkcomm::numerics
