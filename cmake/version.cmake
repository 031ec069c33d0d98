# The version has one source, the macros of the public header; the build, the package files and the library's soname
# follow it.
set(version_header ${CMAKE_CURRENT_LIST_DIR}/../include/pkcomm/pkcomm.h)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${version_header})
file(STRINGS ${version_header} version_lines REGEX "^#define PKCOMM_VERSION_(MAJOR|MINOR|PATCH) +[0-9]+")
set(PKCOMM_VERSION "")
foreach(part MAJOR MINOR PATCH)
  if(NOT version_lines MATCHES "PKCOMM_VERSION_${part} +([0-9]+)")
    message(FATAL_ERROR "${version_header} does not define PKCOMM_VERSION_${part} as a number")
  endif()
  list(APPEND PKCOMM_VERSION ${CMAKE_MATCH_1})
endforeach()
list(JOIN PKCOMM_VERSION "." PKCOMM_VERSION)
