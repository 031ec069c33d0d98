// pkcomm-perf: what the reports say where NCCL was measured beside pkcomm, and calls both one by one and in
// graphs.
#include <cstdio>
#include <nlohmann/json.hpp>
#include <sstream>

#include "pkcomm-perf/plot.hpp"
#include "pkcomm-perf/report.hpp"
#include "support/catch.hpp"

using namespace pkcomm::perf;
using pkcomm::test::contains_text;

namespace {

std::string text_of(std::FILE* file) {
  std::string text;
  std::rewind(file);
  for (int c = std::fgetc(file); c != EOF; c = std::fgetc(file)) text += static_cast<char>(c);
  return text;
}

// Half the time of NCCL, a quarter of it within graphs.
Row compared_row(bool in_graphs_too) {
  Row row;
  row.bytes = 1024;
  row.count = 256;
  row.type = "float";
  row.redop = "sum";
  row.algorithm = "one_shot_ll";
  row.mechanism = "register";
  row.ctas = 1;
  Half half;
  static_cast<Figures&>(half) = {10, 0.1024, 0.1536};
  half.wrong = 0;
  half.nccl = Rival{{20, 0.0512, 0.0768}, {}, std::uint64_t{0}};
  if (in_graphs_too) {
    half.graph = Figures{4, 0.256, 0.384};
    half.nccl->graph = Figures{16, 0.064, 0.096};
  }
  row.out_of_place = half;
  return row;
}

RunInfo compared_run(const Options& options, bool in_graphs_too) {
  RunInfo info;
  info.options = &options;
  info.places.resize(4);
  info.platform = "cuda";
  info.nccl = NcclFacts{"2.28.9", "/opt/libnccl.so.2", "0"};
  info.graph = in_graphs_too;
  info.repeats = 5;
  return info;
}

// Tells the report a run of one row.
void tell(Report& report, const Options& options, bool in_graphs_too) {
  const Collective& collective = describe(CollectiveId::kAllReduce);
  report.run_begins(compared_run(options, in_graphs_too));
  report.table_begins(collective, "");
  const Row row = compared_row(in_graphs_too);
  report.row(row);
  Totals totals;
  totals.add(row);
  report.table_ends(collective, totals, 0);
  CHECK(report.run_ends(totals).ok());
}

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == separator) {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

// Reports write to files: here one that is gone when the test is.
struct TemporaryFile {
  TemporaryFile() { std::fclose(std::fopen(name.c_str(), "w")); }
  ~TemporaryFile() { std::remove(name.c_str()); }
  std::string text() const {
    std::FILE* file = std::fopen(name.c_str(), "r");
    const std::string content = text_of(file);
    std::fclose(file);
    return content;
  }
  std::string name = "/tmp/pkcomm-test-report." + std::to_string(getpid());
};

}  // namespace

TEST_CASE("the table has NCCL's columns and the ratio behind pkcomm's", "[unit][perf]") {
  const bool graphs = GENERATE(false, true);
  CAPTURE(graphs);
  const Options options;
  std::FILE* file = std::tmpfile();
  REQUIRE(file != nullptr);
  tell(*make_text_report(file), options, graphs);
  const std::string text = text_of(file);
  std::fclose(file);
  CHECK_THAT(text, contains_text("# NCCL 2.28.9 from /opt/libnccl.so.2, NCCL_NVLS_ENABLE=0"));
  std::vector<std::string> names;
  std::vector<std::string> values;
  for (const std::string& line : split(text, '\n')) {
    std::istringstream words(line);
    std::vector<std::string> found;
    for (std::string word; words >> word;) found.push_back(word);
    if (found.size() > 2 && found[0] == "#" && found[1] == "size")
      names.assign(found.begin() + 1, found.end());
    if (!found.empty() && found[0] == "1024") values = found;
  }
  REQUIRE(names.size() == 16 + 2 * (graphs ? 8 : 3));
  REQUIRE(values.size() == names.size());
  const auto value = [&](const std::string& column) {
    return values[static_cast<std::size_t>(std::find(names.begin(), names.end(), column) - names.begin())];
  };
  CHECK(value("out_nccl") == "20.00");
  CHECK(value("out_n_busbw") == "0.08");
  CHECK(value("out_ratio") == "0.500");
  CHECK(value("in_ratio") == "nan");
  if (!graphs) return;
  CHECK(value("out_graph") == "4.00");
  CHECK(value("out_n_graph") == "16.00");
  CHECK(value("out_g_ratio") == "0.250");
}

TEST_CASE("CSV has NCCL's figures and the ratio in columns of their own", "[unit][perf]") {
  const TemporaryFile file;
  const Options options;
  Result<std::unique_ptr<Report>> report = make_csv_report(file.name);
  REQUIRE(report.ok());
  tell(*report.value(), options, true);
  const std::vector<std::string> lines = split(file.text(), '\n');
  REQUIRE(lines.size() == 3);
  const std::vector<std::string> names = split(lines[0], ',');
  const std::vector<std::string> values = split(lines[1], ',');
  REQUIRE(values.size() == names.size());
  const auto value = [&](const std::string& column) {
    return values[static_cast<std::size_t>(std::find(names.begin(), names.end(), column) - names.begin())];
  };
  CHECK(value("backend") == "pkcomm");
  CHECK(value("timing") == "eager");
  CHECK(value("time_us") == "10.000");
  CHECK(value("graph_us") == "4.000");
  CHECK(value("nccl_us") == "20.000");
  CHECK(value("ratio") == "0.5000");
  CHECK(value("nccl_wrong") == "0");
  CHECK(value("nccl_graph_us") == "16.000");
  CHECK(value("graph_ratio") == "0.2500");
}

TEST_CASE("JSON nests NCCL's figures in the half that they belong to", "[unit][perf]") {
  const TemporaryFile file;
  Options options;
  options.with_nccl = true;
  tell(*make_json_report(file.name), options, true);
  const nlohmann::json document = nlohmann::json::parse(file.text());
  CHECK(document["nccl"]["version"] == "2.28.9");
  CHECK(document["nccl"]["nvls_enable"] == "0");
  CHECK(document["config"]["backends"] == nlohmann::json({"pkcomm", "nccl"}));
  CHECK(document["config"]["repeats"] == 5);
  const nlohmann::json& half = document["results"][0]["out_of_place"];
  CHECK(half["time"] == 10.0);
  CHECK(half["nccl"]["time"] == 20.0);
  CHECK(half["nccl"]["nwrong"] == 0);
  CHECK(half["ratio"] == 0.5);
  CHECK(half["graph"]["time"] == 4.0);
  CHECK(half["nccl"]["graph"]["time"] == 16.0);
  CHECK(half["graph_ratio"] == 0.25);
  CHECK(document["results"][0]["in_place"].is_null());
}

TEST_CASE("wrong data of NCCL fail the row too", "[unit][perf]") {
  Row row = compared_row(false);
  row.out_of_place->nccl->wrong = 3;
  Totals totals;
  totals.add(row);
  CHECK(totals.wrong == 3);
  CHECK(totals.wrong_rows == 1);
}

TEST_CASE("a plot has NCCL's curve beside", "[unit][perf]") {
  const std::string script = plot_script({compared_row(true)}, "title", "plot.svg");
  CHECK_THAT(script, contains_text("title 'one_shot_ll'"));
  CHECK_THAT(script, contains_text("title 'one_shot_ll, graph'"));
  CHECK_THAT(script, contains_text("title 'NCCL'"));
  CHECK_THAT(script, contains_text("title 'NCCL, graph'"));
  CHECK_THAT(script, contains_text("\n1024 20 0.0768\n"));
}
