// All types and operations over random elements, against a reference that reduces one element at a time.
#include <cstdint>
#include <random>
#include <vector>

#include "support/catch.hpp"
#include "support/numerics_reference.hpp"
#include "unit/numerics_every_way.hpp"

namespace pkcomm::test {
namespace {

using namespace numerics;

// Mostly numbers near each other, so that sums are interesting; also any bits, NaN and infinities among them.
template <class T>
T any_value(std::mt19937_64& random) {
  const std::uint64_t bits = random();
  if constexpr (kIsFloat<T>) {
    if (bits % 4 != 0) {
      const double value = std::uniform_real_distribution<double>(-4, 4)(random);
      if constexpr (kIsNarrowFloat<T>) {
        return encode<T>(value);
      } else {
        return static_cast<T>(value);
      }
    }
  }
  return bit_cast<T>(static_cast<BitsOf<T>>(bits >> 2));
}

template <class T>
using ReduceOne = T (*)(const std::vector<T>& column, const std::vector<T>& multipliers);

// By type alone, so that the loops are not compiled for each operation.
template <class T>
void compare(ReduceKind kind, ReduceOne<T> reference) {
  std::mt19937_64 random(sizeof(T) * 100 + static_cast<unsigned>(kind));
  for (const std::size_t nranks : {1, 2, 3, 4, 5, 8, 17}) {
    for (const std::size_t count : {0, 1, 7, 255, 256, 257, 700}) {
      PerRank<T> x(nranks, std::vector<T>(count));
      std::vector<T> multipliers;
      for (auto& elements : x) {
        for (T& element : elements) element = any_value<T>(random);
        multipliers.push_back(any_value<T>(random));
      }
      const std::vector<T> actual = reduce<T>(kind, x, multipliers);
      std::size_t wrong = 0;
      for (std::size_t i = 0; i < count; ++i) {
        std::vector<T> column;
        for (const auto& elements : x) column.push_back(elements[i]);
        wrong += !same(actual[i], reference(column, multipliers));
      }
      CAPTURE(name(data_type<T>()), name(kind), nranks, count);
      CHECK(wrong == 0);
    }
  }
}

}  // namespace

TEST_CASE("every reduction agrees with one done by hand", "[unit][numerics]") {
  const int dtype = GENERATE(range(0, PKCOMM_DATA_TYPES));
  const int kind = GENERATE(range(0, numerics::kReduceKinds));
  numerics::visit_reduction(
      static_cast<pkcommDataType_t>(dtype), static_cast<ReduceKind>(kind),
      [kind]<class T, class Op>() { compare<T>(static_cast<ReduceKind>(kind), reduce_one<T, Op>); });
}

}  // namespace pkcomm::test
