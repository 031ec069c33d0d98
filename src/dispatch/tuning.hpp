// The cost model's constants: for each collective, algorithm, path and number of ranks a few straight lines
// alpha + bytes / beta, one for a number of CTAs and a range of sizes. Data: tables for known machines are built in
// (tables/), PKCOMM_TUNING names a file that replaces parts of them. The bytes are wire_bytes() of descriptors.hpp, so a
// line measured for one size of group serves the sizes up to the next measured one.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.hpp"
#include "collectives/algorithm.hpp"
#include "topology/topology.hpp"

namespace pkcomm::dispatch {

inline constexpr int kTuningSchema = 1;

/// Through memory of the library (staging, packets, rings), or between windows.
enum class Path : std::uint8_t { kStaged, kZeroCopy };
inline constexpr int kPaths = 2;
std::string_view name(Path path) noexcept;  ///< "staged", "zero_copy"

/// A fraction in units of 2^-32: products with it need no division, and come out alike everywhere.
using Q32 = std::uint64_t;

/// In force for calls of `from_bytes` (Request::bytes) or more, up to the next line with as many CTAs.
struct Line {
  std::uint64_t from_bytes = 0;
  int ctas = 0;
  std::uint64_t alpha_ns = 0;
  Q32 ns_per_byte = 0;  ///< 1000 / the table's bytes_per_us
};

struct Curve {
  int nranks = 2;                 ///< ranks it was measured with
  std::uint64_t per_peer_ns = 0;  ///< added for each rank beyond `nranks`
  std::uint64_t round_ns = 0;     ///< added for each round through staging after the first
  int threads = 1;
  std::uint64_t chunk_bytes = 0;  ///< 0: as large as staging allows
  bool provisional = false;       ///< reckoned, not measured
  std::string source;             ///< what the constants rest on
  std::vector<Line> lines;        ///< by CTAs, then by from_bytes
};

class Tuning {
 public:
  /// The built-in table for `topology`. GPUs without a table of their own get that of the first ones known, and a note
  /// that says so.
  static Result<Tuning> builtin(const Topology& topology);

  /// Lays `text` over this table: its curves replace those for the same collective, algorithm, path and ranks. Refuses,
  /// unchanged, what is not such a table, and a table of another machine. `source` names the text in messages.
  Status overlay(std::string_view text, std::string_view source, const Topology& topology);

  /// The curve for a group of `nranks`: that of the largest group measured up to it, else of the smallest; or null.
  const Curve* find(Collective collective, Algorithm algorithm, Path path, int nranks) const noexcept {
    const Curve* found = nullptr;
    for (const Curve& curve : curves_[slot(collective, algorithm, path)]) {
      if (found != nullptr && curve.nranks > nranks) break;
      found = &curve;
    }
    return found;
  }

  /// Price of holding one CTA, as a fraction of the predicted time.
  Q32 cta_price() const noexcept { return cta_price_; }
  const std::string& name() const noexcept { return name_; }
  /// What a reader of predictions should know of the table; may be empty.
  const std::string& note() const noexcept { return note_; }
  std::uint64_t hash() const noexcept;

 private:
  static constexpr std::size_t kSlots = std::size_t{kCollectives} * kAlgorithms * kPaths;
  static std::size_t slot(Collective collective, Algorithm algorithm, Path path) noexcept {
    return (static_cast<std::size_t>(index(collective)) * kAlgorithms +
            static_cast<std::size_t>(index(algorithm))) *
               kPaths +
           static_cast<std::size_t>(path);
  }

  std::array<std::vector<Curve>, kSlots> curves_;  ///< each by nranks
  Q32 cta_price_ = 0;
  std::string name_;
  std::string note_;
};

}  // namespace pkcomm::dispatch
