// See numerics_every_way.hpp. Works on bytes, so that the checks are compiled once and not for each type and
// operation.
#include "unit/numerics_every_way.hpp"

#include <algorithm>
#include <cstring>

#include "numerics/reduction.hpp"
#include "support/catch.hpp"

namespace pkcomm::test {
namespace {

using namespace numerics;

// A word's outcome; words and scalars of all ranks.
using ReduceWord = std::uint64_t (*)(const std::vector<std::uint64_t>& words,
                                     const std::vector<std::uint64_t>& scalars);

ReduceWord reduce_word_function(pkcommDataType_t dtype, ReduceKind kind) {
  return visit_reduction(dtype, kind, []<class T, class Op>() -> ReduceWord {
    return [](const std::vector<std::uint64_t>& words, const std::vector<std::uint64_t>& scalars) {
      return reduce_word<T, Op>(
          static_cast<int>(words.size()),
          [&words](int rank) { return words[static_cast<std::size_t>(rank)]; }, ScalarWords{scalars.data()});
    };
  });
}

// Word by word, the last one filled up with `filler`.
std::vector<unsigned char> reduce_words(ReduceWord function, std::size_t bytes,
                                        const std::vector<const void*>& sources,
                                        const std::vector<std::uint64_t>& scalars, std::uint64_t filler) {
  std::vector<unsigned char> result(bytes);
  std::vector<std::uint64_t> words(sources.size());
  for (std::size_t at = 0; at < bytes; at += 8) {
    const std::size_t part = std::min<std::size_t>(8, bytes - at);
    for (std::size_t rank = 0; rank < words.size(); ++rank) {
      words[rank] = filler;
      std::memcpy(&words[rank], static_cast<const unsigned char*>(sources[rank]) + at, part);
    }
    const std::uint64_t word = function(words, scalars);
    std::memcpy(result.data() + at, &word, part);
  }
  return result;
}

}  // namespace

std::vector<HostVariant> host_variants() {
  std::vector<HostVariant> all = {HostVariant::kBaseline};
  if (best_host_variant() != HostVariant::kBaseline) all.push_back(HostVariant::kAvx2);
  if (best_host_variant() == HostVariant::kAvx512) all.push_back(HostVariant::kAvx512);
  return all;
}

bool all_same(pkcommDataType_t dtype, const void* a, const void* b, std::size_t count) {
  return visit_type(dtype, [=]<class T>() {
    return std::equal(static_cast<const T*>(a), static_cast<const T*>(a) + count, static_cast<const T*>(b),
                      same<T>);
  });
}

std::vector<unsigned char> reduce_every_way(pkcommDataType_t dtype, ReduceKind kind, std::size_t count,
                                            const std::vector<const void*>& sources,
                                            const std::vector<std::uint64_t>& scalars) {
  const std::size_t size = element_size(dtype), bytes = count * size;
  const int nranks = static_cast<int>(sources.size());
  CAPTURE(name(dtype), name(kind), count, nranks);

  std::vector<unsigned char> result(bytes);
  host_reduce_rows(dtype, kind, HostVariant::kBaseline)(count, nranks, sources.data(), result.data(),
                                                        scalars.data());
  std::vector<unsigned char> other(bytes);
  for (const HostVariant variant : host_variants()) {
    host_reduce_rows(dtype, kind, variant)(count, nranks, sources.data(), other.data(), scalars.data());
    CAPTURE(static_cast<int>(variant));
    CHECK(all_same(dtype, result.data(), other.data(), count));
  }
  // In place, over some ranks' inputs, at an address that is aligned to an element and no more.
  for (std::size_t rank = 0; rank < sources.size(); rank += std::max<std::size_t>(1, sources.size() / 3)) {
    std::vector<unsigned char> storage(bytes + size);
    unsigned char* in_place = storage.data() + size;
    if (bytes > 0) std::memcpy(in_place, sources[rank], bytes);
    std::vector<const void*> with_it = sources;
    with_it[rank] = in_place;
    host_reduce_rows(dtype, kind)(count, nranks, with_it.data(), in_place, scalars.data());
    CAPTURE(rank);
    CHECK(all_same(dtype, result.data(), in_place, count));
  }
  // With zeros, NaNs of all types, and a mixture of special values behind the last element.
  for (const std::uint64_t filler :
       {std::uint64_t{0}, ~std::uint64_t{0}, std::uint64_t{0x7F8000017C017F81}}) {
    other = reduce_words(reduce_word_function(dtype, kind), bytes, sources, scalars, filler);
    CAPTURE(filler);
    CHECK(all_same(dtype, result.data(), other.data(), count));
  }
  return result;
}

}  // namespace pkcomm::test
