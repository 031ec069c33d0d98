// By CLI11, which this file alone includes.
#include "options.hpp"

#include <CLI/CLI.hpp>
#include <cstdio>

namespace pkcomm::info {

namespace {

constexpr int kExitUsage = 2;

constexpr const char* kFooter = R"(
Exit code
  0    told
  1    standard output could not be written
  2    a command line that cannot be)";

}  // namespace

std::optional<Options> parse_options(int argc, char** argv, int& exit_code) {
  Options options;
  CLI::App app("Tells what pkcomm finds on this machine: GPUs, links, platform, variables.", "pkcomm-info");
  app.set_help_flag("-h,--help", "Show this text");
  app.add_flag("--json", options.json, "JSON instead of text (docs/pkcomm-info.md lists the fields)");
  app.add_flag("--variables", options.variables,
               "Every variable with its meaning, not only those that are set");
  app.footer(kFooter);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& done) {
    exit_code = app.exit(done);
    return std::nullopt;
  } catch (const CLI::ParseError& error) {
    std::fprintf(stderr, "pkcomm-info: %s (--help shows all flags)\n", error.what());
    exit_code = kExitUsage;
    return std::nullopt;
  }
  return options;
}

}  // namespace pkcomm::info
