// Rules to masks. A rule with a collective's name replaces, for that collective, those without; allow lists unite, deny
// lists subtract.
#include "dispatch/overrides.hpp"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "base/hash.hpp"
#include "collectives/descriptors.hpp"

namespace pkcomm::dispatch {
namespace {

using environment::Rule;
using environment::Var;

constexpr std::uint8_t kAll = 0xff;
static_assert(kAlgorithms <= 8 && kMechanisms <= 8, "a mask has 8 bits");

template <class Enum, int kCount>
std::vector<std::string> all_names() {
  std::vector<std::string> names;
  for (int i = 0; i < kCount; ++i) {
    std::string word(name(static_cast<Enum>(i)));
    std::replace(word.begin(), word.end(), ' ', '_');  // as the variable must have it
    names.push_back(std::move(word));
  }
  return names;
}

void report(Var var, std::string_view unknown, const std::vector<std::string>& names) {
  const std::vector<std::string_view> allowed(names.begin(), names.end());
  environment::report_unknown_name(var, unknown, allowed);
}

/// One rule with its names looked up.
struct Known {
  bool general = true;
  Collective collective = Collective::kAllReduce;
  bool deny = false;
  std::uint8_t mask = 0;
};

template <class Enum, int kCount>
std::vector<Known> look_up(Var var, const std::vector<Rule>& rules,
                           std::optional<Enum> (*find)(std::string_view) noexcept) {
  std::vector<Known> known;
  for (const Rule& rule : rules) {
    Known entry;
    entry.deny = rule.deny;
    if (!rule.collective.empty()) {
      const auto collective = find_collective(rule.collective);
      if (!collective) {
        report(var, rule.collective, all_names<Collective, kCollectives>());
        continue;
      }
      entry.general = false;
      entry.collective = *collective;
    }
    for (const std::string& word : rule.names) {
      if (const auto value = find(word)) {
        entry.mask = static_cast<std::uint8_t>(entry.mask | 1U << index(*value));
      } else {
        report(var, word, all_names<Enum, kCount>());
      }
    }
    if (entry.mask != 0) known.push_back(entry);
  }
  return known;
}

/// What a collective may use, and what an allow list names for it.
struct Verdict {
  std::uint8_t allowed = kAll;
  std::uint8_t asked = 0;
};

Verdict combine(const std::vector<Known>& rules, Collective collective) {
  const auto names_it = [&](const Known& rule) { return !rule.general && rule.collective == collective; };
  const bool specific = std::any_of(rules.begin(), rules.end(), names_it);
  Verdict verdict;
  unsigned denied = 0;
  for (const Known& rule : rules) {
    if (specific ? !names_it(rule) : !rule.general) continue;
    if (rule.deny) {
      denied |= rule.mask;
    } else {
      verdict.asked = static_cast<std::uint8_t>(verdict.asked | rule.mask);
    }
  }
  verdict.allowed = static_cast<std::uint8_t>((verdict.asked != 0 ? verdict.asked : kAll) & ~denied);
  return verdict;
}

// A rule for everything does not mean the collectives that can be done in one way only.
bool has_choice(Collective collective) {
  const auto can = [&](const Descriptor& d) { return (d.collectives & bit(collective)) != 0; };
  return std::count_if(descriptors().begin(), descriptors().end(), can) > 1;
}

}  // namespace

Overrides::Overrides() noexcept {
  algorithms_.fill(kAll);
  mechanisms_.fill(kAll);
}

Overrides Overrides::from_rules(const std::vector<Rule>& algorithm, const std::vector<Rule>& mechanism,
                                std::size_t chunk_bytes) {
  const auto algorithms = look_up<Algorithm, kAlgorithms>(Var::kAlgorithm, algorithm, find_algorithm);
  const auto mechanisms = look_up<Mechanism, kMechanisms>(Var::kMechanism, mechanism, find_mechanism);
  Overrides overrides;
  overrides.chunk_bytes_ = chunk_bytes;
  for (int i = 0; i < kCollectives; ++i) {
    const auto collective = static_cast<Collective>(i);
    const auto specific = [&](const Known& rule) { return !rule.general && rule.collective == collective; };
    const bool named = std::any_of(algorithms.begin(), algorithms.end(), specific) ||
                       std::any_of(mechanisms.begin(), mechanisms.end(), specific);
    if (!named && !has_choice(collective)) continue;
    const Verdict by_algorithm = combine(algorithms, collective);
    const Verdict by_mechanism = combine(mechanisms, collective);
    const auto at = static_cast<std::size_t>(i);
    overrides.algorithms_[at] = by_algorithm.allowed;
    overrides.mechanisms_[at] = by_mechanism.allowed;
    overrides.asked_[at] = by_algorithm.asked;
    for (const Descriptor& d : descriptors()) {
      if ((by_mechanism.asked >> index(d.mechanism) & 1U) != 0) {
        overrides.asked_[at] = static_cast<std::uint8_t>(overrides.asked_[at] | 1U << index(d.algorithm));
      }
    }
  }
  return overrides;
}

std::uint64_t Overrides::hash() const noexcept {
  Hash hash;
  for (const Masks& masks : {algorithms_, mechanisms_, asked_}) {
    for (const std::uint8_t mask : masks) hash.add(mask);
  }
  hash.add(chunk_bytes_);
  return hash.value();
}

}  // namespace pkcomm::dispatch
