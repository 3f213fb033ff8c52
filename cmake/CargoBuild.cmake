# Drives cargo. Sets bowstring_shared_built, bowstring_static_built and bowstring_native_libs.

set(bowstring_cargo_dir "${PROJECT_BINARY_DIR}/cargo")
if(BOWSTRING_CARGO_TARGET_DIR)
  get_filename_component(bowstring_cargo_dir "${BOWSTRING_CARGO_TARGET_DIR}" ABSOLUTE BASE_DIR "${CMAKE_BINARY_DIR}")
endif()
set(bowstring_cargo_args build --release --locked --package bowstring-capi)
set(bowstring_built_dir "${bowstring_cargo_dir}/release")
if(BOWSTRING_CARGO_TARGET)
  list(APPEND bowstring_cargo_args --target "${BOWSTRING_CARGO_TARGET}")
  set(bowstring_built_dir "${bowstring_cargo_dir}/${BOWSTRING_CARGO_TARGET}/release")
endif()
if(BOWSTRING_CARGO_FEATURES)
  list(APPEND bowstring_cargo_args --features "${BOWSTRING_CARGO_FEATURES}")
endif()
set(bowstring_cargo_env "CARGO_TARGET_DIR=${bowstring_cargo_dir}")
if(BOWSTRING_RUSTFLAGS)
  list(APPEND bowstring_cargo_env "RUSTFLAGS=${BOWSTRING_RUSTFLAGS}")
endif()

set(bowstring_shared_built
    "${bowstring_built_dir}/${CMAKE_SHARED_LIBRARY_PREFIX}bowstring${CMAKE_SHARED_LIBRARY_SUFFIX}")
set(bowstring_static_built
    "${bowstring_built_dir}/${CMAKE_STATIC_LIBRARY_PREFIX}bowstring${CMAKE_STATIC_LIBRARY_SUFFIX}")

# Always run: only cargo knows whether there is something to do.
add_custom_target(
  bowstring_cargo ${bowstring_all}
  COMMAND "${CMAKE_COMMAND}" -E env ${bowstring_cargo_env} "${BOWSTRING_CARGO_EXECUTABLE}" ${bowstring_cargo_args}
  WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}"
  BYPRODUCTS "${bowstring_shared_built}" "${bowstring_static_built}"
  USES_TERMINAL VERBATIM)

# What a Rust static library needs of the system comes from std: the dependencies link nothing of their own. An
# empty library therefore answers for ours, before ours is built.
set(bowstring_native_libs "")
if(BOWSTRING_RUSTC_EXECUTABLE)
  set(probe "${PROJECT_BINARY_DIR}/native_libs")
  file(WRITE "${probe}/empty.rs" "")
  set(probe_args --crate-type staticlib --print native-static-libs --out-dir "${probe}" "${probe}/empty.rs")
  if(BOWSTRING_CARGO_TARGET)
    list(APPEND probe_args --target "${BOWSTRING_CARGO_TARGET}")
  endif()
  execute_process(
    COMMAND "${BOWSTRING_RUSTC_EXECUTABLE}" ${probe_args}
    WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}"
    OUTPUT_VARIABLE probe_output
    ERROR_VARIABLE probe_output
    RESULT_VARIABLE probe_result)
  string(REGEX MATCH "native-static-libs: ([^\n]*)" probe_line "${probe_output}")
  if(NOT probe_result EQUAL 0 OR NOT probe_line)
    message(FATAL_ERROR "rustc does not say which native libraries a static copy needs:\n${probe_output}")
  endif()
  string(STRIP "${CMAKE_MATCH_1}" probe_libs)
  separate_arguments(bowstring_native_libs UNIX_COMMAND "${probe_libs}")
elseif(BOWSTRING_INSTALL AND BOWSTRING_INSTALL_STATIC)
  message(FATAL_ERROR "rustc was not found next to cargo; set BOWSTRING_RUSTC_EXECUTABLE")
endif()
