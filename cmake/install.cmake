# What `cmake --install` gives: the header, the library, the programs (tools/), a pkg-config file and a CMake package.
include(CMakePackageConfigHelpers)
install(TARGETS pkcomm EXPORT pkcommTargets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY include/pkcomm DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h" PATTERN "*.cuh")

set(package_directory ${CMAKE_INSTALL_LIBDIR}/cmake/pkcomm)
install(EXPORT pkcommTargets NAMESPACE pkcomm:: DESTINATION ${package_directory})
configure_package_config_file(cmake/pkcommConfig.cmake.in ${PROJECT_BINARY_DIR}/pkcommConfig.cmake
                              INSTALL_DESTINATION ${package_directory})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/pkcommConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/pkcommConfig.cmake ${PROJECT_BINARY_DIR}/pkcommConfigVersion.cmake
        DESTINATION ${package_directory})

# Paths relative to the file itself, so that an installed tree may be moved.
file(RELATIVE_PATH PKCOMM_PC_PREFIX "/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/")
string(REGEX REPLACE "/$" "" PKCOMM_PC_PREFIX "${PKCOMM_PC_PREFIX}")
configure_file(pkcomm.pc.in ${PROJECT_BINARY_DIR}/pkcomm.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/pkcomm.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
