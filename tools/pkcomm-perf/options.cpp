// The command line, by CLI11, which this file alone includes. CLI11 splits the words; the values are read
// here, so that every refusal is one line with the flag, what was given and what is allowed, and ends with
// exit code 2.
#include "options.hpp"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <deque>

#include "collectives.hpp"
#include "help.hpp"
#include "plot.hpp"
#include "supervisor.hpp"
#include "team.hpp"
#include "values.hpp"

namespace pkcomm::perf {

namespace {

constexpr int kMost = 1'000'000'000;

// Collects what CLI11 found, then turns it into options, flag by flag.
class Parser {
 public:
  Parser() : app_("Measures and checks pkcomm's collectives.", "pkcomm-perf") {
    app_.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
    app_.set_help_flag("-h,--help", "Show this text");
    app_.get_formatter()->column_width(40);
    app_.footer(kHelpFooter);
    add_sizes_and_data();
    add_ranks();
    add_measuring();
    add_gpu();
    add_output();
    add_compatibility();
  }

  std::optional<Options> parse(int argc, char** argv, int& exit_code) {
    options_.arguments.assign(argv, argv + argc);
    app_.set_version_flag("--version", version_text);
    try {
      app_.parse(argc, argv);
    } catch (const CLI::Success& done) {  // help and version
      exit_code = app_.exit(done);
      return std::nullopt;
    } catch (const CLI::ParseError& error) {
      exit_code = refuse(error.what());
      return std::nullopt;
    }
    for (const auto& read : readers_) {
      if (const Outcome outcome = read(); !outcome.ok()) {
        exit_code = refuse(outcome.error().text);
        return std::nullopt;
      }
    }
    if (const Outcome outcome = check_together(); !outcome.ok()) {
      exit_code = refuse(outcome.error().text);
      return std::nullopt;
    }
    return options_;
  }

 private:
  static int refuse(std::string text) {
    std::replace(text.begin(), text.end(), '\n', ' ');
    std::fprintf(stderr, "pkcomm-perf: %s (--help shows all flags)\n", text.c_str());
    return kExitUsage;
  }

  static std::string version_text() {
    int library = 0;
    (void)pkcommGetVersion(&library);  // cannot fail: the pointer is not null
    const auto words = [](int code) {
      return std::to_string(code / 10000) + "." + std::to_string(code / 100 % 100) + "." +
             std::to_string(code % 100);
    };
    return "pkcomm-perf " + words(PKCOMM_VERSION) + ", library " + words(library);
  }

  // Adds an option whose text `read` turns into a value, if it was given.
  void add(const std::string& names, const std::string& value, const std::string& help,
           std::function<Outcome(const std::string&)> read) {
    std::string& text = texts_.emplace_back();
    CLI::Option* option = app_.add_option(names, text, help)->type_name(value)->group(group_);
    const std::string first = names.substr(0, names.find(','));
    readers_.push_back([option, &text, first, read = std::move(read)]() -> Outcome {
      if (option->count() == 0) return {};
      const Outcome outcome = read(text);
      return outcome.ok() ? outcome : Error{first + " " + outcome.error().text};
    });
  }

  void add_integer(const std::string& names, int& target, int least, int most, const std::string& help) {
    add(names, "N", help + " [" + std::to_string(target) + "]",
        [&target, least, most](const std::string& text) -> Outcome {
          const Result<std::size_t> value =
              whole_number(text, static_cast<std::size_t>(least), static_cast<std::size_t>(most));
          PERF_TRY(value);
          target = static_cast<int>(value.value());
          return {};
        });
  }

  void add_switch01(const std::string& names, bool& target, const std::string& help) {
    add(names, "0|1", help + " [0]", [&target](const std::string& text) -> Outcome {
      if (text != "0" && text != "1") return Error{"'" + text + "': expected 0 or 1"};
      target = text == "1";
      return {};
    });
  }

  void add_flag(const std::string& names, bool& target, const std::string& help) {
    app_.add_flag(names, target, help)->group(group_);
  }

  void add_size(const std::string& names, std::size_t& target, const std::string& help) {
    add(names, "SIZE", help + " [" + in_words(target) + "]", [&target](const std::string& text) -> Outcome {
      const Result<std::size_t> bytes = parse_size(text);
      PERF_TRY(bytes);
      target = bytes.value();
      return {};
    });
  }

  void add_text(const std::string& names, std::string& target, const std::string& value,
                const std::string& help, std::vector<std::string> allowed = {}) {
    add(names, value, help, [&target, allowed = std::move(allowed)](const std::string& text) -> Outcome {
      std::string list;
      for (const std::string& each : allowed) list += (list.empty() ? "" : ", ") + each;
      const bool known = allowed.empty() || std::find(allowed.begin(), allowed.end(), text) != allowed.end();
      if (!known) return Error{"'" + text + "': expected one of " + list};
      target = text;
      return {};
    });
  }

  // A file to write; "-" stands for standard output where `dash` says so.
  void add_file(const std::string& names, std::string& target, bool dash, const std::string& help) {
    add(names, "FILE", help, [&target, dash](const std::string& text) -> Outcome {
      if (text == "-" && !dash) return Error{"'-': expected the name of a file"};
      PERF_TRY(writable(text));
      target = text;
      return {};
    });
  }

  // A flag of nccl-tests without a meaning here; 0 is always accepted in silence.
  void add_ignored(const std::string& names, const std::string& why) {
    add(names, "N", "accepted: " + why, [this, names, why](const std::string& text) -> Outcome {
      PERF_TRY(whole_number(text, 0, kMost));
      if (text != "0") options_.notes.push_back(names.substr(0, names.find(',')) + " " + text + ": " + why);
      return {};
    });
  }

  void add_sizes_and_data() {
    group_ = "What to measure";
    add("collective,--collective,--coll", "NAME",
        "a collective, several separated by commas, or all (see --list)",
        [this](const std::string& text) -> Outcome {
          Result<std::vector<CollectiveId>> found = find_collectives(text);
          if (!found.ok()) return found.error();
          options_.collectives = std::move(found.value());
          return {};
        });
    add_size("-b,--minbytes", options_.sizes.least, "least size; 1K, 1.5M and 4G are powers of 1024");
    add_size("-e,--maxbytes", options_.sizes.most, "greatest size");
    add_size("-i,--stepbytes", options_.sizes.step, "added from size to size");
    add("-f,--stepfactor", "N", "multiplies from size to size, instead of -i",
        [this](const std::string& text) -> Outcome {
          const Result<std::size_t> factor = whole_number(text, 1, kMost);
          PERF_TRY(factor);
          options_.sizes.factor = factor.value();
          return {};
        });
    add("-d,--datatype", "TYPE", "element type, several separated by commas, or all [float]",
        [this](const std::string& text) -> Outcome {
          Result<std::vector<pkcommDataType_t>> types = parse_types(text);
          PERF_TRY(types);
          options_.types = std::move(types.value());
          return {};
        });
    add("-o,--op", "OP", "sum, prod, min, max, avg, mulsum, or all [sum]",
        [this](const std::string& text) -> Outcome {
          Result<std::vector<Op>> ops = parse_ops(text);
          PERF_TRY(ops);
          options_.ops = std::move(ops.value());
          return {};
        });
    add("-r,--root", "RANK", "root of rooted collectives, or all [0]",
        [this](const std::string& text) -> Outcome {
          options_.all_roots = text == "all";
          if (options_.all_roots) return {};
          const Result<std::size_t> root = whole_number(text, 0, 1023);
          PERF_TRY(root);
          options_.root = static_cast<int>(root.value());
          return {};
        });
    add_integer("-u,--unalign", options_.unalign, 0, 4096,
                "buffers begin at this element of an aligned block");
    add("-R,--local_register", "0|1|2", "0: ordinary memory, 2: symmetric heap [0]",
        [this](const std::string& text) -> Outcome {
          if (text != "0" && text != "1" && text != "2") return Error{"'" + text + "': expected 0, 1 or 2"};
          options_.memory = text == "2" ? Memory::kHeap : Memory::kMalloc;
          if (text == "1") options_.notes.push_back("-R 1: local registration does not exist here; as -R 0");
          return {};
        });
    // nccl-tests' --memory is the report; here the word names the kind of memory as well.
    memory_option_ = app_.add_option("-M,--memory", memory_words_,
                                     "heap or malloc: as -R 2 and -R 0; 1: report memory use")
                         ->type_name("KIND")
                         ->group(group_)
                         ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
                         ->expected(1)
                         ->allow_extra_args(false);
    readers_.push_back([this]() -> Outcome {
      for (const std::string& word : memory_words_) {
        if (word == "heap" || word == "malloc") {
          options_.memory = word == "heap" ? Memory::kHeap : Memory::kMalloc;
        } else if (word == "0" || word == "1") {
          options_.memory_report = word == "1";
        } else {
          return Error{"--memory '" + word + "': expected heap, malloc, 0 or 1"};
        }
      }
      return {};
    });
  }

  void add_ranks() {
    group_ = "Ranks";
    add_integer("-g,--ngpus", options_.processes, 1, 1024, "rank processes to start");
    add_integer("-t,--nthreads", options_.threads, 1, 1024,
                "ranks in each process, as threads; ranks = g * t");
    add_text("--launcher", options_.launcher, "NAME",
             "auto, none, mpirun, srun or torchrun: who started this process [auto]",
             {"auto", "none", "mpirun", "srun", "torchrun"});
    add("--rendezvous", "HOST:PORT", "where processes of a launcher meet; without it, at their job's name",
        [this](const std::string& text) -> Outcome {
          PERF_TRY(parse_meeting_point(text));
          options_.rendezvous = text;
          return {};
        });
    add_integer("--join-timeout", options_.join_timeout_s, 1, 86400,
                "seconds that the ranks may take to find each other");
    add_text("--platform", options_.platform, "NAME", "auto, host or cuda [auto]", {"auto", "host", "cuda"});
  }

  void add_measuring() {
    group_ = "How to measure";
    add_integer("-n,--iters", options_.iterations, 1, kMost,
                "timed iterations; the time column is their mean");
    add_integer("-w,--warmup_iters", options_.warmup, 0, kMost, "untimed iterations before, at each size");
    add_integer("-m,--agg_iters", options_.aggregate, 1, 65536, "operations in one iteration, as one group");
    add_integer("-N,--run_cycles", options_.cycles, 0, kMost, "times to do everything; 0: until interrupted");
    add_integer("-c,--check", options_.checks, 0, kMost, "checked iterations; 0: no check, #wrong is N/A");
    add("-a,--average", "0|1|2|3", "time over ranks: 0 rank 0's, 1 mean, 2 least, 3 greatest [1]",
        [this](const std::string& text) -> Outcome {
          const Result<std::size_t> value = whole_number(text, 0, 3);
          PERF_TRY(value);
          options_.across = static_cast<Across>(value.value());
          return {};
        });
    add("-z,--blocking", "0|1|2|3",
        "after each iteration: 0 nothing, 1 wait and barrier, 2 wait, 3 as 1, untimed [0]",
        [this](const std::string& text) -> Outcome {
          const Result<std::size_t> value = whole_number(text, 0, 3);
          PERF_TRY(value);
          options_.blocking = static_cast<Blocking>(value.value());
          return {};
        });
    add_switch01("-y,--stream_null", options_.null_stream, "use the default stream");
    add_switch01("-C,--report_cputime", options_.host_time, "time column: the host's time to enqueue");
    add_integer("-T,--timeout", options_.timeout_s, 0, 1'000'000,
                "seconds that one test may take; 0: the library's limit");
    add_integer("-K,--per_iter_skip", options_.skip_samples, 0, kMost,
                "leading iterations that statistics leave out");
    add_text("--algorithm", options_.algorithm, "LIST",
             "allowed algorithms, as PKCOMM_ALGORITHM; each: one after another");
    add("--repeats", "N", "times to measure each row; the median counts [host 1, cuda 5]",
        [this](const std::string& text) -> Outcome {
          const Result<std::size_t> value = whole_number(text, 1, 10000);
          PERF_TRY(value);
          options_.repeats = static_cast<int>(value.value());
          return {};
        });
    add("--backend", "LIST", "pkcomm, nccl, or both: measured in turn at each size [pkcomm]",
        [this](const std::string& text) { return parse_backends(text, options_); });
    add_text("--nccl-lib", options_.nccl_library, "FILE", "libnccl.so.2, where it is not found by itself");
    group_ = "";  // for tests of this program
    add("--inject-error", "FAULT", "", [this](const std::string& text) -> Outcome {
      const Result<Injection> injection = parse_injection(text);
      PERF_TRY(injection);
      options_.injection = injection.value();
      return {};
    });
  }

  void add_gpu() {
    group_ = "On GPUs";
    app_.add_flag_callback(
            "--graph", [this] { options_.graph_flag = "--graph"; },
            "time calls that are captured in a CUDA graph")
        ->group(group_);
    add("-G,--cudagraph", "N", "as --graph, replayed N times in a row; 0: no graph",
        [this](const std::string& text) -> Outcome {
          const Result<std::size_t> replays = whole_number(text, 0, 10000);
          PERF_TRY(replays);
          if (replays.value() == 0) return {};
          options_.graph_replays = static_cast<int>(replays.value());
          options_.graph_flag = "-G " + text;
          return {};
        });
    add_integer("--graph-calls", options_.graph_calls, 1, 10000, "calls in one graph; fewer above 4 MiB");
    add_flag("--eager", options_.eager, "with --graph: both ways, the graph's in columns of its own");
    add_flag("--cold", options_.cold, "each call finds its data in no cache");
  }

  void add_output() {
    group_ = "Output";
    add_switch01("-I,--per_iter_timing", options_.per_iteration,
                 "columns i_min i_max i_p99 i_cv% in each half");
    add_flag("--percentiles", options_.percentiles,
             "columns min p50 p99 max of single iterations behind the others");
    add_flag("--skew", options_.skew, "column: how long the first rank to end precedes the last, median");
    add_switch01("-S,--report_timestamps", options_.timestamps, "column: when the row was made");
    add_file("-J,--json,--output_file", options_.json, true, "write JSON at the end; - is standard output");
    add_file("--csv", options_.csv, true, "write CSV row by row; - is standard output");
    add_file("--plot", options_.plot, false, "draw time and bandwidth over size, .svg or .png (gnuplot)");
    add_flag("--explain", options_.explain, "measure nothing: print the dispatcher's candidates and reasons");
    add_text("--topology", options_.topology, "FILE",
             "with --explain: a recorded machine instead of this one");
    add_flag("--list", options_.list, "print collectives, types and operations");
  }

  void add_compatibility() {
    group_ = "Of nccl-tests, without effect here";
    add_ignored("-p,--parallel_init", "ranks always start at the same time");
    add_ignored("-x,--cta_policy", "see PKCOMM_MIN_CTAS and PKCOMM_MAX_CTAS");
    add_ignored("-V,--device_cta_count", "see PKCOMM_MIN_CTAS and PKCOMM_MAX_CTAS");
    add("-D,--device_implementation", "N", "0 alone: see --algorithm",
        [](const std::string& text) -> Outcome {
          if (text == "0") return {};
          return Error{"'" + text + "': the library has no second implementation; choose with --algorithm"};
        });
  }

  Outcome check_together() {
    if (options_.list) return {};
    if (options_.collectives.empty()) return Error{"which collective? Name one, or all"};
    if (const auto fault = options_.sizes.fault()) return Error{*fault};
    if (options_.threads * options_.processes > 1024) return Error{"-g times -t is more than 1024 ranks"};
    if (options_.skip_samples >= options_.iterations) return Error{"-K leaves none of the -n iterations"};
    if (!options_.nccl_library.empty() && !options_.with_nccl)
      return Error{"--nccl-lib goes with --backend nccl"};
    if (options_.with_nccl && options_.platform == "host")
      return Error{"--backend nccl: NCCL runs on GPUs alone, not with --platform host"};
    if (!options_.with_pkcomm && !options_.algorithm.empty())
      return Error{"--algorithm speaks of pkcomm's algorithms"};
    if (!options_.with_pkcomm && options_.explain) return Error{"--explain speaks of pkcomm's choice"};
    const bool graph = !options_.graph_flag.empty();
    if (options_.eager && !graph) return Error{"--eager goes with --graph; without, it is what is done"};
    if (graph && options_.null_stream)
      return Error{"the default stream (-y 1) cannot be captured in a graph"};
    if (graph && options_.blocking != Blocking::kNone)
      return Error{options_.graph_flag + ": within a graph nobody waits, so not with -z"};
    if (options_.cold && options_.aggregate > 1)
      return Error{"--cold goes with -m 1: the calls of a group have the same data"};
    if (options_.cold && options_.blocking != Blocking::kNone) return Error{"--cold goes with -z 0 alone"};
    if (!options_.topology.empty() && !options_.explain) return Error{"--topology goes with --explain"};
    const bool single = options_.per_iteration || options_.percentiles || options_.skew;
    if (single && options_.null_stream)
      return Error{"-I, --percentiles and --skew need a stream of their own, not -y 1"};
    if (single && options_.blocking == Blocking::kOutsideTime) {
      return Error{"-z 3 times each iteration by itself; -I, --percentiles and --skew go with -z 0, 1 or 2"};
    }
    const bool at_end = !options_.json.empty() || !options_.plot.empty();
    if (at_end && options_.cycles == 0)
      return Error{"--json and --plot are written at the end, which -N 0 has not"};
    if (options_.json == "-" && options_.csv == "-") return Error{"only one of --json and --csv can be -"};
    if (options_.explain && (at_end || !options_.csv.empty())) return Error{"--explain only prints"};
    if (!options_.plot.empty() && !plot_terminal(options_.plot))
      return Error{"--plot '" + options_.plot + "': expected .svg or .png"};
    if (!options_.plot.empty() && !on_path("gnuplot"))
      return Error{"--plot needs gnuplot, which is not on PATH"};
    return {};
  }

  CLI::App app_;
  Options options_;
  std::string group_;
  std::deque<std::string> texts_;  // stable addresses for CLI11
  std::vector<std::string> memory_words_;
  CLI::Option* memory_option_ = nullptr;
  std::vector<std::function<Outcome()>> readers_;
};

}  // namespace

std::optional<Options> parse_options(int argc, char** argv, int& exit_code) {
  return Parser().parse(argc, argv, exit_code);
}

}  // namespace pkcomm::perf
