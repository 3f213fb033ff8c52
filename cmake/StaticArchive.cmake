# The static library that is installed: one object, whose only global symbols are the documented ones. Rust's own archive
# also exposes the runtime of its standard library, which clashes with any other Rust archive in the same program.
# Sets bowstring_static_installed.

set(bowstring_exports "${PROJECT_SOURCE_DIR}/cmake/exports.txt")
if(NOT BOWSTRING_INSTALL_STATIC)
  return()
endif()

if(CMAKE_EXECUTABLE_FORMAT STREQUAL "ELF" OR CMAKE_SYSTEM_NAME STREQUAL "Linux")
  set(bowstring_static_installed "${PROJECT_BINARY_DIR}/static/libbowstring.a")
  add_custom_command(
    OUTPUT "${bowstring_static_installed}"
    COMMAND
      "${CMAKE_COMMAND}" "-DLINKER=${CMAKE_LINKER}" "-DOBJCOPY=${CMAKE_OBJCOPY}" "-DARCHIVER=${CMAKE_AR}"
      "-DINPUT=${bowstring_static_built}" "-DSYMBOLS=${bowstring_exports}" "-DOUTPUT=${bowstring_static_installed}" -P
      "${PROJECT_SOURCE_DIR}/cmake/HideSymbols.cmake"
    DEPENDS "${bowstring_static_built}" "${bowstring_exports}" "${PROJECT_SOURCE_DIR}/cmake/HideSymbols.cmake"
    COMMENT "Hiding the static library's foreign symbols"
    VERBATIM)
  add_custom_target(bowstring_static ALL DEPENDS "${bowstring_static_installed}")
  add_dependencies(bowstring_static bowstring_cargo)
else()
  # The tools that hide symbols are ELF tools; elsewhere the archive is installed as rustc made it.
  set(bowstring_static_installed "${bowstring_static_built}")
endif()
