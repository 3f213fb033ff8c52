# The shared library under the names that programs look for, and bowstring::bowstring, which links it from here.
# Sets bowstring_real_name, bowstring_soname, bowstring_link_name and bowstring_shared_dir.

if(APPLE)
  set(bowstring_real_name "libbowstring.${PROJECT_VERSION}.dylib")
  set(bowstring_soname "libbowstring.${bowstring_abi}.dylib")
  set(bowstring_link_name "libbowstring.dylib")
else()
  set(bowstring_real_name "libbowstring.so.${PROJECT_VERSION}")
  set(bowstring_soname "libbowstring.so.${bowstring_abi}")
  set(bowstring_link_name "libbowstring.so")
endif()

# The names of an older version must not stay behind.
set(bowstring_shared_dir "${PROJECT_BINARY_DIR}/shared/${PROJECT_VERSION}")
file(MAKE_DIRECTORY "${bowstring_shared_dir}")
foreach(pair "${bowstring_real_name}|${bowstring_soname}" "${bowstring_soname}|${bowstring_link_name}")
  string(REPLACE "|" ";" pair "${pair}")
  list(GET pair 0 aim)
  list(GET pair 1 link)
  if(NOT aim STREQUAL link)
    execute_process(COMMAND "${CMAKE_COMMAND}" -E create_symlink "${aim}" "${bowstring_shared_dir}/${link}")
  endif()
endforeach()

set(bowstring_shared_named "${bowstring_shared_dir}/${bowstring_real_name}")
add_custom_command(
  OUTPUT "${bowstring_shared_named}"
  COMMAND "${CMAKE_COMMAND}" -E copy "${bowstring_shared_built}" "${bowstring_shared_named}"
  DEPENDS "${bowstring_shared_built}"
  COMMENT "Naming the shared library"
  VERBATIM)
add_custom_target(bowstring_shared ${bowstring_all} DEPENDS "${bowstring_shared_named}")
add_dependencies(bowstring_shared bowstring_cargo)

add_library(bowstring::bowstring SHARED IMPORTED GLOBAL)
set_target_properties(
  bowstring::bowstring
  PROPERTIES IMPORTED_LOCATION "${bowstring_shared_named}"
             IMPORTED_SONAME "${bowstring_soname}"
             INTERFACE_INCLUDE_DIRECTORIES "${PROJECT_SOURCE_DIR}/include")
add_dependencies(bowstring::bowstring bowstring_shared)
