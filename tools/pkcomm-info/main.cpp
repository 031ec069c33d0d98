// pkcomm-info: what pkcomm finds on this machine, and what is in force. Reads, never changes; starts without a GPU and
// without a driver.
#include <cstdio>

#include "options.hpp"
#include "report.hpp"

int main(int argc, char** argv) {
  using namespace pkcomm::info;
  int exit_code = 0;
  const std::optional<Options> options = parse_options(argc, argv, exit_code);
  if (!options) return exit_code;
  const Facts facts = collect();
  const std::string text = options->json ? to_json(facts) : to_text(facts, options->variables);
  const bool whole = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
  if (whole && std::fflush(stdout) == 0) return 0;
  std::perror("pkcomm-info: standard output");
  return 1;
}
