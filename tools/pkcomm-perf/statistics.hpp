// Order statistics of iteration times. Percentiles are by nearest rank: always a time that was measured, and
// with fewer than 100 of them the 99th percentile is the maximum.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

namespace pkcomm::perf {

struct Summary {
  double min = 0, max = 0, mean = 0, p50 = 0, p95 = 0, p99 = 0, stdev = 0;
  /// Spread in per cent of the mean.
  double cv_percent() const { return mean > 0 ? stdev / mean * 100 : 0; }
};

/// `sorted` ascending and not empty; `percent` within (0, 100].
inline double percentile(const std::vector<double>& sorted, int percent) {
  const std::size_t rank = (sorted.size() * static_cast<std::size_t>(percent) + 99) / 100;
  return sorted[std::max<std::size_t>(rank, 1) - 1];
}

/// Of an empty set: all zeros.
inline Summary summarize(std::vector<double> samples) {
  Summary summary;
  if (samples.empty()) return summary;
  std::sort(samples.begin(), samples.end());
  summary.min = samples.front();
  summary.max = samples.back();
  summary.p50 = percentile(samples, 50);
  summary.p95 = percentile(samples, 95);
  summary.p99 = percentile(samples, 99);
  const double n = static_cast<double>(samples.size());
  for (const double sample : samples) summary.mean += sample / n;
  double variance = 0;
  for (const double sample : samples) variance += (sample - summary.mean) * (sample - summary.mean) / n;
  summary.stdev = std::sqrt(variance);
  return summary;
}

}  // namespace pkcomm::perf
