// pkcomm-info: what pkcomm finds on this machine, and what is in force. Reads, never changes; starts without a GPU and
// without a driver.
#include <CLI/CLI.hpp>
#include <cstdio>

#include "report.hpp"

namespace {

constexpr int kExitFailed = 1;
constexpr int kExitUsage = 2;

constexpr const char* kFooter = R"(
Exit code
  0    told
  1    standard output could not be written
  2    a command line that cannot be)";

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Tells what pkcomm finds on this machine: GPUs, links, platform, variables.", "pkcomm-info");
  app.set_help_flag("-h,--help", "Show this text");
  bool json = false, variables = false;
  app.add_flag("--json", json, "JSON instead of text (docs/pkcomm-info.md lists the fields)");
  app.add_flag("--variables", variables, "Every variable with its meaning, not only those that are set");
  app.footer(kFooter);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& done) {
    return app.exit(done);
  } catch (const CLI::ParseError& error) {
    std::fprintf(stderr, "pkcomm-info: %s (--help shows all flags)\n", error.what());
    return kExitUsage;
  }
  const pkcomm::info::Facts facts = pkcomm::info::collect();
  const std::string text = json ? pkcomm::info::to_json(facts) : pkcomm::info::to_text(facts, variables);
  const bool whole = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
  if (whole && std::fflush(stdout) == 0) return 0;
  std::perror("pkcomm-info: standard output");
  return kExitFailed;
}
