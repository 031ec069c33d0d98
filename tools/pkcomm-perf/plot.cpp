// Out of place alone: in place is the same algorithm. Both axes are logarithmic, so that sizes a million
// times apart show. NCCL has curves beside, where it was measured too.
#include "plot.hpp"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <set>
#include <sstream>

#include "report.hpp"

namespace pkcomm::perf {

namespace {

// Within gnuplot's single quotes.
std::string quoted(const std::string& text) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\n') continue;
    out += c == '\'' ? "''" : std::string(1, c);
  }
  return out + "'";
}

struct Point {
  std::size_t bytes;
  Figures figures;
};
using Curves = std::map<std::string, std::vector<Point>>;

// One curve an algorithm; types, operations and roots are told apart where there are several.
Curves curves_of(const std::vector<Row>& rows) {
  std::set<std::string> types;
  std::set<std::string> ops;
  std::set<int> roots;
  bool each = false;  // --algorithm each: the dispatcher's own choice is a curve among the others
  for (const Row& row : rows) {
    each = each || !row.forced.empty();
    types.insert(row.type);
    ops.insert(row.redop);
    roots.insert(row.root);
  }
  Curves curves;
  for (const Row& row : rows) {
    if (row.bytes == 0 || !row.out_of_place || !(row.out_of_place->time_us > 0)) continue;
    std::string key = row.algorithm;
    if (row.algorithm == "-") key = describe(row.collective).name;
    if (each && row.forced.empty()) key = "as the dispatcher chooses";
    const std::size_t stem = key.size();
    if (types.size() > 1) key += " " + row.type;
    if (ops.size() > 1) key += " " + row.redop;
    if (roots.size() > 1) key += " root " + std::to_string(row.root);
    const Half& half = *row.out_of_place;
    curves[key].push_back({row.bytes, half});
    if (half.graph) curves[key + ", graph"].push_back({row.bytes, *half.graph});
    // Under --algorithm each NCCL is measured once for every algorithm: one curve of them is enough.
    if (!half.nccl || !row.forced.empty()) continue;
    key.replace(0, stem, "NCCL");
    curves[key].push_back({row.bytes, half.nccl->figures});
    if (half.nccl->graph) curves[key + ", graph"].push_back({row.bytes, *half.nccl->graph});
  }
  return curves;
}

class PlotReport final : public Report {
 public:
  explicit PlotReport(std::string file) : file_(std::move(file)) {}

  void run_begins(const RunInfo& info) override {
    title_ = ", " + std::to_string(info.nranks()) + " ranks, pkcomm-perf";
    if (info.nccl) title_ += ", NCCL " + info.nccl->version;
    if (info.platform == "host") title_ += ", host platform (not a GPU's performance)";
  }
  void row(const Row& row) override { rows_[row.collective].push_back(row); }

  Outcome run_ends(const Totals&) override {
    std::map<CollectiveId, std::vector<Row>> drawable;
    for (const auto& [id, rows] : rows_) {
      if (!curves_of(rows).empty()) drawable.emplace(id, rows);
    }
    if (drawable.empty()) return Error{"--plot: no row has a size, so there is nothing to draw"};
    for (const auto& [id, rows] : drawable) {
      const std::string name(describe(id).name);
      const std::string file = plot_file(file_, name, drawable.size() > 1);
      PERF_TRY(run_gnuplot(plot_script(rows, name + title_, file), file));
    }
    return {};
  }

 private:
  std::string file_;
  std::string title_;
  std::map<CollectiveId, std::vector<Row>> rows_;
};

}  // namespace

std::optional<std::string> plot_terminal(std::string_view file) {
  if (file.size() > 4 && file.ends_with(".svg")) return "svg size 900,900 dynamic background rgb 'white'";
  if (file.size() > 4 && file.ends_with(".png")) return "pngcairo size 1200,1200";
  return std::nullopt;
}

std::string plot_file(const std::string& file, std::string_view collective, bool several) {
  if (!several) return file;
  const std::size_t ending = file.size() - 4;
  return file.substr(0, ending) + "-" + std::string(collective) + file.substr(ending);
}

std::string plot_script(const std::vector<Row>& rows, const std::string& title, const std::string& file) {
  const Curves curves = curves_of(rows);
  std::ostringstream script;
  script.imbue(std::locale::classic());
  script << "set terminal " << *plot_terminal(file) << "\nset output " << quoted(file) << "\n";
  std::size_t number = 0;
  std::string time_plot;
  std::string rate_plot;
  bool rates = false;
  for (const auto& [key, points] : curves) {
    script << "$curve" << number << " << END\n";
    for (const Point& point : points) {
      script << point.bytes << " " << point.figures.time_us << " " << point.figures.busbw << "\n";
      rates = rates || point.figures.busbw > 0;
    }
    script << "END\n";
    const std::string source = (number > 0 ? ", " : "") + ("$curve" + std::to_string(number)) + " using 1:";
    const std::string style = " with linespoints title " + quoted(key);
    time_plot += source + "2" + style;
    rate_plot += source + "3" + style;
    ++number;
  }
  script << "set key noenhanced left top\nset grid\nset logscale x 2\nset logscale y\nset format x '%.0b%B'\n"
         << "set xlabel 'size (bytes, powers of 1024)'\n";
  if (rates) script << "set multiplot layout 2,1\n";
  script << "set title " << quoted(title) << " noenhanced\nset ylabel 'time (us)'\nplot " << time_plot
         << "\n";
  if (rates) {
    script << "unset title\nset ylabel 'busbw (GB/s)'\nplot " << rate_plot << "\nunset multiplot\n";
  }
  script << "unset output\n";
  return script.str();
}

Outcome run_gnuplot(const std::string& script, const std::string& file) {
  std::FILE* pipe = popen("gnuplot", "we");
  if (pipe == nullptr) return Error{"--plot: gnuplot could not be started"};
  std::fwrite(script.data(), 1, script.size(), pipe);
  if (pclose(pipe) != 0) return Error{"--plot: gnuplot did not make " + file};
  return {};
}

bool on_path(const std::string& program) {
  const char* path = std::getenv("PATH");
  std::istringstream directories(path != nullptr ? path : "");
  for (std::string directory; std::getline(directories, directory, ':');) {
    if (access((directory + "/" + program).c_str(), X_OK) == 0) return true;
  }
  return false;
}

std::unique_ptr<Report> make_plot(const std::string& file) { return std::make_unique<PlotReport>(file); }

}  // namespace pkcomm::perf
