# The device kernels: each src/collectives/cuda/<name>.cu becomes a fat binary that libpkcomm.so carries as data and loads
# through the driver, so that the library needs no CUDA runtime. They are compiled as ordinary CUDA objects, of which only
# the section with the device code is used: so CMake tracks their headers, the compiler cache works (it does not for
# nvcc -fatbin), and the host stubs in the object tell the kernels' names.
file(GLOB kernel_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/collectives/cuda/*.cu)
add_library(pkcomm_kernels OBJECT ${kernel_sources})
target_include_directories(pkcomm_kernels PRIVATE include src)
target_link_libraries(pkcomm_kernels PRIVATE pkcomm_cuda_flags)
if(CMAKE_CUDA_COMPILER_VERSION VERSION_GREATER_EQUAL 12.8)
  target_compile_options(pkcomm_kernels PRIVATE --compress-mode=size)
else()
  target_compile_options(pkcomm_kernels PRIVATE -Xfatbin=-compress-all)
endif()

set(kernel_directory ${PROJECT_BINARY_DIR}/kernels)
set(kernel_images ${kernel_directory}/images.cpp)
add_custom_command(
  OUTPUT ${kernel_images}
  COMMAND ${CMAKE_COMMAND} "-DOBJECTS=$<JOIN:$<TARGET_OBJECTS:pkcomm_kernels>,$<SEMICOLON>>" -DDIRECTORY=${kernel_directory}
          -DOBJCOPY=${CMAKE_OBJCOPY} -DNM=${CMAKE_NM} -P ${PROJECT_SOURCE_DIR}/cmake/embed_kernels.cmake
  DEPENDS $<TARGET_OBJECTS:pkcomm_kernels> ${PROJECT_SOURCE_DIR}/cmake/embed_kernels.cmake
  COMMENT "Embedding the kernels" VERBATIM)
