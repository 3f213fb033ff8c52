# nanoarrow, from its unpacked C sources, as the peer that tests hand arrays to.

get_filename_component(nanoarrow_package "${NANOARROW_SOURCE_DIR}/../../.." ABSOLUTE)
if(NOT nanoarrow_package MATCHES "nanoarrow-(([0-9]+)\\.([0-9]+)\\.([0-9]+))")
  message(FATAL_ERROR "${NANOARROW_SOURCE_DIR} is not inside an unpacked nanoarrow-X.Y.Z")
endif()
set(NANOARROW_VERSION "${CMAKE_MATCH_1}")
set(NANOARROW_VERSION_MAJOR "${CMAKE_MATCH_2}")
set(NANOARROW_VERSION_MINOR "${CMAKE_MATCH_3}")
set(NANOARROW_VERSION_PATCH "${CMAKE_MATCH_4}")
set(NANOARROW_NAMESPACE_DEFINE "")
configure_file("${NANOARROW_SOURCE_DIR}/nanoarrow/nanoarrow_config.h.in"
               "${CMAKE_CURRENT_BINARY_DIR}/nanoarrow_config/nanoarrow/nanoarrow_config.h" @ONLY)

set(nanoarrow_sources "")
foreach(name common/array common/array_stream common/schema common/utils device/device)
  list(APPEND nanoarrow_sources "${NANOARROW_SOURCE_DIR}/nanoarrow/${name}.c")
endforeach()
add_library(nanoarrow_for_tests STATIC ${nanoarrow_sources})
set_target_properties(nanoarrow_for_tests PROPERTIES C_EXTENSIONS ON POSITION_INDEPENDENT_CODE ON)
target_compile_options(nanoarrow_for_tests PRIVATE -w)
# SYSTEM, because its headers are not written for the warnings that our sources are held to.
target_include_directories(nanoarrow_for_tests SYSTEM PUBLIC "${NANOARROW_SOURCE_DIR}"
                                                             "${CMAKE_CURRENT_BINARY_DIR}/nanoarrow_config")
