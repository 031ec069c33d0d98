// Draws the rows: time and bus bandwidth over size, a curve for each algorithm. Made by gnuplot, to which a
// script with the data in it is piped, so that no file but the picture is written.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "result.hpp"
#include "row.hpp"

namespace pkcomm::perf {

/// The terminal of gnuplot for a file name's ending, or none: .svg and .png are known.
std::optional<std::string> plot_terminal(std::string_view file);

/// The picture of one collective; several in one run get "-<collective>" before the ending.
std::string plot_file(const std::string& file, std::string_view collective, bool several);

/// The script that draws `rows`, all of one collective and not empty, into `file`.
std::string plot_script(const std::vector<Row>& rows, const std::string& title, const std::string& file);

/// Pipes a script to gnuplot.
Outcome run_gnuplot(const std::string& script, const std::string& file);

/// Whether a program of this name is on PATH.
bool on_path(const std::string& program);

}  // namespace pkcomm::perf
