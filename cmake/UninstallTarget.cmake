# Removes what the last installation from this build folder wrote.

add_custom_target(
  uninstall
  COMMAND "${CMAKE_COMMAND}" "-DMANIFESTS=${CMAKE_BINARY_DIR}" -P "${PROJECT_SOURCE_DIR}/cmake/Uninstall.cmake"
  COMMENT "Removing what was installed" USES_TERMINAL VERBATIM)
