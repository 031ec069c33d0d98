// What a buffer must hold, as a list of stretches: poison where nobody may write, some rank's input, or the
// result of a reduction. A collective states its outputs; everything else follows from what lay there before.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace pkcomm::perf {

struct Segment {
  enum Kind { kPoison, kInput, kResult };
  Kind kind = kPoison;
  std::size_t at = 0;     // elements from the buffer's start
  std::size_t count = 0;  // elements
  int rank = 0;           // kInput: whose
  std::size_t first = 0;  // position in that rank's input, or in the result
};

/// Lays `top` over `image`, which covers its buffer without gaps, in order of `at`.
inline void overlay(std::vector<Segment>& image, const Segment& top) {
  if (top.count == 0) return;
  std::vector<Segment> out;
  const std::size_t begin = top.at;
  const std::size_t end = top.at + top.count;
  bool placed = false;
  for (const Segment& old : image) {
    const std::size_t old_end = old.at + old.count;
    if (old.at < begin) {
      Segment left = old;
      left.count = std::min(old_end, begin) - old.at;
      out.push_back(left);
    }
    if (!placed && old_end > begin) {
      out.push_back(top);
      placed = true;
    }
    if (old_end > end) {
      Segment right = old;
      const std::size_t cut = end > old.at ? end - old.at : 0;
      right.at += cut;
      right.first += cut;
      right.count -= cut;
      out.push_back(right);
    }
  }
  image = std::move(out);
}

}  // namespace pkcomm::perf
