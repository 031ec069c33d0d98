# How everything here is compiled, as one interface target: pkcomm_flags. Also where outputs go, the default build type
# and the compiler cache.
if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Release, RelWithDebInfo or Debug" FORCE)
endif()
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)
# Programs find the library beside themselves, in the build tree and installed, so that either may be moved. Directories
# outside the project (an hwloc built by hand) are kept.
file(RELATIVE_PATH bin_to_lib "/${CMAKE_INSTALL_BINDIR}" "/${CMAKE_INSTALL_LIBDIR}")
set(CMAKE_BUILD_WITH_INSTALL_RPATH ON)
set(CMAKE_INSTALL_RPATH_USE_LINK_PATH ON)
set(CMAKE_INSTALL_RPATH "$ORIGIN/../lib" "$ORIGIN/${bin_to_lib}")
list(REMOVE_DUPLICATES CMAKE_INSTALL_RPATH)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_C_STANDARD 99)
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)

find_program(PKCOMM_CCACHE ccache)
if(PKCOMM_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # Without the two kinds of sloppiness ccache refuses every file that uses a precompiled header.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros ${PKCOMM_CCACHE})
  set(CMAKE_C_COMPILER_LAUNCHER ${PKCOMM_CCACHE})
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${PKCOMM_CCACHE})
endif()

add_library(pkcomm_flags INTERFACE)
target_compile_options(pkcomm_flags INTERFACE -Wall -Wextra -Wshadow -Wpedantic)
# One result on every machine and platform: a product and a sum are two roundings, never one fused.
target_compile_options(pkcomm_flags INTERFACE -ffp-contract=off)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # GCC 12 sees overlaps and overflows in "literal" + std::string() (GCC bug 105651, fixed in 13).
  target_compile_options(pkcomm_flags INTERFACE -Wno-restrict -Wno-stringop-overflow -Wno-array-bounds)
endif()
if(PKCOMM_WERROR)
  target_compile_options(pkcomm_flags INTERFACE -Werror)
endif()

set(PKCOMM_NO_UNDEFINED -Wl,--no-undefined)
if(PKCOMM_SANITIZE)
  # -O1 and short line tables: sanitized code at -O0 is too slow for the suites, full debug information to link.
  target_compile_options(pkcomm_flags INTERFACE -fsanitize=${PKCOMM_SANITIZE} -fno-sanitize-recover=all -O1 -g1
                         -fno-omit-frame-pointer)
  target_link_options(pkcomm_flags INTERFACE -fsanitize=${PKCOMM_SANITIZE})
  if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    set(PKCOMM_NO_UNDEFINED "")  # clang leaves the runtime to the program, so the library's references stay open
  endif()
endif()
if(PKCOMM_COVERAGE)
  # Atomic counts: ranks are threads, and processes that fork, of one test.
  target_compile_options(pkcomm_flags INTERFACE --coverage -fprofile-update=atomic -O0 -g1)
  target_compile_definitions(pkcomm_flags INTERFACE PKCOMM_COVERAGE=1)
  target_link_options(pkcomm_flags INTERFACE --coverage)
endif()
