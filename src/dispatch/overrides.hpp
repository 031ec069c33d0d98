// What the user's environment says about the choice: lists of algorithms and mechanisms that are allowed or denied for
// each collective, and the size of a round. Names are checked here, where they are known; the grammar is the
// environment's.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/environment.hpp"
#include "collectives/algorithm.hpp"

namespace pkcomm::dispatch {

class Overrides {
 public:
  /// No wishes: everything but the algorithms that must be asked for.
  Overrides() noexcept;

  /// A name that is none of ours is left out and reported through environment::report_unknown_name(), once. A list of
  /// which nothing is left counts as unset.
  static Overrides from_rules(const std::vector<environment::Rule>& algorithm,
                              const std::vector<environment::Rule>& mechanism, std::size_t chunk_bytes);

  /// Whether PKCOMM_ALGORITHM allows it.
  bool allows(Collective collective, Algorithm algorithm) const noexcept {
    return (algorithms_[static_cast<std::size_t>(index(collective))] >> index(algorithm) & 1U) != 0;
  }
  /// Whether PKCOMM_MECHANISM allows it.
  bool allows(Collective collective, Mechanism mechanism) const noexcept {
    return (mechanisms_[static_cast<std::size_t>(index(collective))] >> index(mechanism) & 1U) != 0;
  }
  /// Whether an allow list names it: what a forced-only algorithm needs.
  bool asks_for(Collective collective, Algorithm algorithm) const noexcept {
    return (asked_[static_cast<std::size_t>(index(collective))] >> index(algorithm) & 1U) != 0;
  }
  std::size_t chunk_bytes() const noexcept { return chunk_bytes_; }  ///< 0: the table's

  /// Changes with every difference that could change a decision.
  std::uint64_t hash() const noexcept;

 private:
  using Masks = std::array<std::uint8_t, kCollectives>;
  Masks algorithms_;
  Masks mechanisms_;
  Masks asked_{};
  std::size_t chunk_bytes_ = 0;
};

}  // namespace pkcomm::dispatch
