# The static library: one object, whose only global symbols are the documented ones. Rust's own archive also exposes the
# runtime of its standard library, which clashes with any other Rust archive in the same program.
# Sets bowstring_static_named, and bowstring::static, which links it from here.

set(bowstring_exports "${PROJECT_SOURCE_DIR}/cmake/exports.txt")
if(NOT BOWSTRING_RUSTC_EXECUTABLE)
  return()
endif()
set(bowstring_all_static "")
if(BOWSTRING_INSTALL_STATIC)
  set(bowstring_all_static ${bowstring_all})
endif()

if(CMAKE_EXECUTABLE_FORMAT STREQUAL "ELF" OR CMAKE_SYSTEM_NAME STREQUAL "Linux")
  set(bowstring_static_named "${PROJECT_BINARY_DIR}/static/libbowstring.a")
  add_custom_command(
    OUTPUT "${bowstring_static_named}"
    COMMAND
      "${CMAKE_COMMAND}" "-DLINKER=${CMAKE_LINKER}" "-DOBJCOPY=${CMAKE_OBJCOPY}" "-DARCHIVER=${CMAKE_AR}"
      "-DINPUT=${bowstring_static_built}" "-DSYMBOLS=${bowstring_exports}" "-DOUTPUT=${bowstring_static_named}" -P
      "${PROJECT_SOURCE_DIR}/cmake/HideSymbols.cmake"
    DEPENDS "${bowstring_static_built}" "${bowstring_exports}" "${PROJECT_SOURCE_DIR}/cmake/HideSymbols.cmake"
    COMMENT "Hiding the static library's foreign symbols"
    VERBATIM)
  add_custom_target(bowstring_static ${bowstring_all_static} DEPENDS "${bowstring_static_named}")
  add_dependencies(bowstring_static bowstring_cargo)
else()
  # The tools that hide symbols are ELF tools; elsewhere the archive is the one that rustc made.
  set(bowstring_static_named "${bowstring_static_built}")
  add_custom_target(bowstring_static ${bowstring_all_static})
  add_dependencies(bowstring_static bowstring_cargo)
endif()

# Exported structs point into the code of whatever object holds this copy, so that object must stay loaded.
set(bowstring_static_options "")
if(CMAKE_SYSTEM_NAME STREQUAL "Linux")
  set(bowstring_static_options "-Wl,-z,nodelete")
endif()

add_library(bowstring::static STATIC IMPORTED GLOBAL)
set_target_properties(
  bowstring::static
  PROPERTIES IMPORTED_LOCATION "${bowstring_static_named}"
             INTERFACE_COMPILE_DEFINITIONS BOWSTRING_STATIC
             INTERFACE_INCLUDE_DIRECTORIES "${PROJECT_SOURCE_DIR}/include"
             INTERFACE_LINK_LIBRARIES "${bowstring_native_libs}"
             INTERFACE_LINK_OPTIONS "${bowstring_static_options}")
add_dependencies(bowstring::static bowstring_static)
