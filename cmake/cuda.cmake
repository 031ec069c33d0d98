# Decides whether the CUDA parts are built. Sets PKCOMM_CUDA_FOUND, PKCOMM_CUDA_INCLUDE (the driver's header) and the
# interface target pkcomm_cuda_flags. A machine without nvcc is an ordinary machine: AUTO then means OFF.
set(PKCOMM_CUDA_FOUND OFF)
string(TOUPPER "${PKCOMM_CUDA}" cuda_wanted)
if(NOT cuda_wanted MATCHES "^(AUTO|ON|OFF|1|0)$")
  message(FATAL_ERROR "PKCOMM_CUDA=${PKCOMM_CUDA}: allowed are AUTO, ON and OFF")
endif()
if(cuda_wanted MATCHES "^(OFF|0)$")
  return()
endif()

find_program(PKCOMM_NVCC nvcc HINTS ENV CUDACXX ENV CUDA_HOME /usr/local/cuda PATH_SUFFIXES bin)
if(PKCOMM_NVCC AND NOT CMAKE_CUDA_COMPILER)
  set(CMAKE_CUDA_COMPILER ${PKCOMM_NVCC} CACHE FILEPATH "The CUDA compiler")
endif()
# Named before the language is enabled, or CMake would choose an architecture by itself.
if(NOT CMAKE_CUDA_ARCHITECTURES)
  set(CMAKE_CUDA_ARCHITECTURES 90-real 100-real)
endif()
include(CheckLanguage)
check_language(CUDA)
if(NOT CMAKE_CUDA_COMPILER)
  if(NOT cuda_wanted STREQUAL "AUTO")
    message(FATAL_ERROR "PKCOMM_CUDA=${PKCOMM_CUDA}, but no working nvcc was found on PATH or in /usr/local/cuda/bin")
  endif()
  message(STATUS "pkcomm: no nvcc, CUDA is off")
  return()
endif()

enable_language(CUDA)
set(PKCOMM_CUDA_FOUND ON)
set(PKCOMM_CUDA_INCLUDE ${CMAKE_CUDA_TOOLKIT_INCLUDE_DIRECTORIES})
message(STATUS "pkcomm: CUDA is on, nvcc ${CMAKE_CUDA_COMPILER_VERSION}, architectures ${CMAKE_CUDA_ARCHITECTURES}")
set(CMAKE_CUDA_STANDARD 20)
set(CMAKE_CUDA_EXTENSIONS OFF)
if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")  # nvcc knows it since 12.0, CMake 3.25 does not know that
  set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION "-std=c++20")
endif()

add_library(pkcomm_cuda_flags INTERFACE)
# -fmad=false is -ffp-contract=off of the device.
# -Wpedantic is left out: nvcc's generated host code is not pedantic.
target_compile_options(pkcomm_cuda_flags INTERFACE -fmad=false --expt-relaxed-constexpr
                       -Xcompiler=-Wall,-Wextra,-Wshadow,-ffp-contract=off)
if(PKCOMM_WERROR)
  target_compile_options(pkcomm_cuda_flags INTERFACE --Werror=all-warnings)
endif()
