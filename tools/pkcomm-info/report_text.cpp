// Text for people: a block a subject, the subject's name in the first column.
#include <algorithm>
#include <cstdarg>
#include <cstdio>

#include "report.hpp"

namespace pkcomm::info {

namespace {

[[gnu::format(printf, 2, 3)]] void add(std::string& text, const char* format, ...) {
  va_list arguments, again;
  va_start(arguments, format);
  va_copy(again, arguments);
  const int bytes = std::vsnprintf(nullptr, 0, format, arguments);
  va_end(arguments);
  const std::size_t before = text.size();
  text.resize(before + static_cast<std::size_t>(std::max(bytes, 0)) + 1);
  std::vsnprintf(text.data() + before, text.size() - before, format, again);
  va_end(again);
  text.pop_back();
}

/// "139.8 GiB", "2 MiB".
std::string in_words(std::uint64_t bytes) {
  static constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (value >= 1024 && unit + 1 < std::size(kUnits)) {
    value /= 1024;
    ++unit;
  }
  char text[32];
  const bool whole = value == static_cast<double>(static_cast<std::uint64_t>(value));
  std::snprintf(text, sizeof text, whole ? "%.0f %s" : "%.1f %s", value, kUnits[unit]);
  return text;
}

void add_library(std::string& text, const Library& library) {
  add(text, "pkcomm        %s\n", library.version.c_str());
  if (!library.failure.empty()) {
    add(text, "platform      none: %s\n", library.failure.c_str());
    return;
  }
  add(text, "platform      %s, memory in multiples of %s\n", library.platform.c_str(),
      in_words(library.granularity_bytes).c_str());
  add(text, "tuning table  %s%s%s\n", library.tuning.c_str(), library.tuning_note.empty() ? "" : "; ",
      library.tuning_note.c_str());
}

void add_multicast(std::string& text, const Library& library) {
  if (library.multicast) {
    add(text, "multicast     on\n");
  } else if (!library.multicast_reason.empty()) {
    add(text, "multicast     off: %s\n", library.multicast_reason.c_str());
  }
  add(text, "              %s%s\n",
      library.multicast_switch.empty() ? "no variable forbids it" : "forbidden by ",
      library.multicast_switch.c_str());
}

void add_host(std::string& text, const Host& host) {
  add(text, "\nhost          %s%s%s%s%s\n", host.name.c_str(), host.machine.empty() ? "" : ", ",
      host.machine.c_str(), host.cpu.empty() ? "" : ", ", host.cpu.c_str());
  if (!host.failure.empty()) {
    add(text, "              %s\n", host.failure.c_str());
    return;
  }
  add(text, "              %d of %d cores for this process\n", host.allowed_cores, host.cores);
  for (const NumaNode& node : host.numa_nodes) {
    add(text, "  NUMA %-2d     %d cores, %s\n", node.index, node.cores, in_words(node.memory_bytes).c_str());
  }
}

void add_links(std::string& text, const NvLinks& links) {
  if (links.active == 0) {
    text += ", no NVLink";
    return;
  }
  add(text, ", %d NVLinks", links.active);
  if (links.version > 0) add(text, " (version %d)", links.version);
  if (links.mb_per_s > 0) add(text, " of %.1f GB/s", links.mb_per_s / 1000.0);
  if (links.to_switches > 0) add(text, ", %d to switches", links.to_switches);
  if (!links.to_gpus.empty()) add(text, ", %zu to GPUs", links.to_gpus.size());
}

void add_gpu(std::string& text, std::size_t index, const Gpu& gpu) {
  add(text, "  GPU %-2zu      %s, %s, %d SMs, %s, %d copy engines\n", index, gpu.name.c_str(),
      gpu.arch.c_str(), gpu.sms, in_words(gpu.memory_bytes).c_str(), gpu.copy_engines);
  add(text, "              %s, PCI %s", gpu.uuid.c_str(), gpu.pci.c_str());
  if (gpu.numa_node) add(text, ", NUMA %d", *gpu.numa_node);
  if (gpu.pcie) {
    add(text, ", PCIe %d x%d (at most %d x%d)", gpu.pcie->generation, gpu.pcie->width,
        gpu.pcie->most_generation, gpu.pcie->most_width);
  }
  text += "\n              shares memory by";
  text += gpu.posix_handles ? " descriptor" : " no descriptor";
  if (gpu.fabric_handles) text += " and fabric handle";
  text += gpu.multicast ? ", could do multicast" : ", cannot do multicast";
  if (gpu.nvlinks) add_links(text, *gpu.nvlinks);
  text += "\n";
}

// A row a GPU that reads and writes, a column a GPU that is read and written.
void add_pairs(std::string& text, const Cuda& cuda) {
  if (cuda.pairs.empty()) return;
  text += "\nfrom \\ to";
  for (std::size_t to = 0; to < cuda.gpus.size(); ++to) add(text, " %12zu", to);
  for (std::size_t from = 0; from < cuda.gpus.size(); ++from) {
    add(text, "\n  GPU %-3zu", from);
    for (std::size_t to = 0; to < cuda.gpus.size(); ++to) {
      const auto pair = std::find_if(cuda.pairs.begin(), cuda.pairs.end(), [&](const Pair& one) {
        return static_cast<std::size_t>(one.from) == from && static_cast<std::size_t>(one.to) == to;
      });
      std::string word = "-";
      if (pair != cuda.pairs.end())
        word = pair->path + (pair->peer_access ? pair->native_atomics ? "" : "!" : "x");
      add(text, " %12s", word.c_str());
    }
  }
  const auto some = [&](auto is) { return std::any_of(cuda.pairs.begin(), cuda.pairs.end(), is); };
  text += "\n";
  if (some([](const Pair& pair) { return !pair.peer_access; }))
    text += "  x: no access to the peer's memory\n";
  if (some([](const Pair& pair) { return pair.peer_access && !pair.native_atomics; })) {
    text += "  !: no atomic operations on the peer's memory\n";
  }
}

void add_cuda(std::string& text, const Cuda& cuda, const Nvml& nvml) {
  text += "\nCUDA          ";
  if (cuda.version > 0) add(text, "%d.%d", cuda.version / 1000, cuda.version % 1000 / 10);
  if (!nvml.driver.empty()) add(text, ", driver %s", nvml.driver.c_str());
  if (!cuda.failure.empty()) {
    add(text, "%sno GPU: %s", cuda.version > 0 ? ", " : "", cuda.failure.c_str());
  }
  if (cuda.visible_devices) add(text, ", CUDA_VISIBLE_DEVICES=%s", cuda.visible_devices->c_str());
  text += "\n";
  for (std::size_t i = 0; i < cuda.gpus.size(); ++i) add_gpu(text, i, cuda.gpus[i]);
  if (!cuda.gpus.empty() && !nvml.failure.empty()) add(text, "  links unknown: %s\n", nvml.failure.c_str());
  add_pairs(text, cuda);
}

void add_variables(std::string& text, const std::vector<Variable>& variables, bool all) {
  std::size_t defaults = 0;
  text += "\nvariables\n";
  for (const Variable& variable : variables) {
    if (!all && !variable.from_environment && variable.refused.empty()) {
      ++defaults;
      continue;
    }
    add(text, "  %s=%s (%s)\n", variable.name.c_str(), variable.value.c_str(),
        variable.from_environment ? "environment" : "default");
    if (!variable.refused.empty()) add(text, "      refused: %s\n", variable.refused.c_str());
    if (all) add(text, "      %s; allowed: %s\n", variable.meaning.c_str(), variable.allowed.c_str());
  }
  if (defaults > 0) add(text, "  %zu at their defaults (--variables shows them)\n", defaults);
}

}  // namespace

std::string to_text(const Facts& facts, bool all_variables) {
  std::string text;
  add_library(text, facts.library);
  add_multicast(text, facts.library);
  add_host(text, facts.host);
  add_cuda(text, facts.cuda, facts.nvml);
  add_variables(text, facts.library.variables, all_variables);
  return text;
}

}  // namespace pkcomm::info
