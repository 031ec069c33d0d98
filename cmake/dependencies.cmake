# What the library and the programs take from elsewhere. hwloc is the one shared library; everything else is headers,
# taken as include directories alone, because the packages' own targets would link libfmt or libspdlog.
find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(HWLOC REQUIRED IMPORTED_TARGET hwloc>=2.0)

# Finds the directory of one header, or stops with the package that has it.
function(pkcomm_find_header variable header package)
  find_path(${variable} ${header})
  if(NOT ${variable})
    message(FATAL_ERROR "${header} is not installed (Debian and Ubuntu: ${package}; scripts/quickstart installs it)")
  endif()
endfunction()

pkcomm_find_header(PKCOMM_SPDLOG_INCLUDE spdlog/logger.h libspdlog-dev)
pkcomm_find_header(PKCOMM_JSON_INCLUDE nlohmann/json.hpp nlohmann-json3-dev)
set(header_directories ${PKCOMM_SPDLOG_INCLUDE} ${PKCOMM_JSON_INCLUDE})
# Distributions unbundle fmt from spdlog; upstream's spdlog brings its own.
if(NOT EXISTS ${PKCOMM_SPDLOG_INCLUDE}/spdlog/fmt/bundled/core.h)
  pkcomm_find_header(PKCOMM_FMT_INCLUDE fmt/format.h libfmt-dev)
  list(APPEND header_directories ${PKCOMM_FMT_INCLUDE})
  set(PKCOMM_SPDLOG_DEFINITIONS SPDLOG_FMT_EXTERNAL FMT_HEADER_ONLY)
endif()
list(REMOVE_DUPLICATES header_directories)
add_library(pkcomm_headers_only INTERFACE)
target_include_directories(pkcomm_headers_only SYSTEM INTERFACE ${header_directories})

if(PKCOMM_TOOLS)
  pkcomm_find_header(PKCOMM_CLI11_INCLUDE CLI/CLI.hpp libcli11-dev)
  add_library(pkcomm_tool_headers INTERFACE)
  target_include_directories(pkcomm_tool_headers SYSTEM INTERFACE ${PKCOMM_CLI11_INCLUDE} ${PKCOMM_JSON_INCLUDE})
endif()
