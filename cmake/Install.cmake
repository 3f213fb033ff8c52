# Installs libraries, headers, the CMake package and the pkg-config file. Every path in them is relative, so that the
# prefix can be moved.

set(bowstring_package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/bowstring")
if(APPLE)
  set(bowstring_real_name "libbowstring.${PROJECT_VERSION}.dylib")
  set(bowstring_soname "libbowstring.${bowstring_abi}.dylib")
  set(bowstring_link_name "libbowstring.dylib")
else()
  set(bowstring_real_name "libbowstring.so.${PROJECT_VERSION}")
  set(bowstring_soname "libbowstring.so.${bowstring_abi}")
  set(bowstring_link_name "libbowstring.so")
endif()

set(links "${PROJECT_BINARY_DIR}/links")
file(MAKE_DIRECTORY "${links}")
foreach(pair "${bowstring_real_name}|${bowstring_soname}" "${bowstring_soname}|${bowstring_link_name}")
  string(REPLACE "|" ";" pair "${pair}")
  list(GET pair 0 aim)
  list(GET pair 1 link)
  if(NOT aim STREQUAL link)
    execute_process(COMMAND "${CMAKE_COMMAND}" -E create_symlink "${aim}" "${links}/${link}")
    install(FILES "${links}/${link}" DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT bowstring)
  endif()
endforeach()
install(PROGRAMS "${bowstring_shared_built}" DESTINATION "${CMAKE_INSTALL_LIBDIR}" RENAME "${bowstring_real_name}"
        COMPONENT bowstring)

if(BOWSTRING_INSTALL_STATIC)
  install(FILES "${bowstring_static_installed}" DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT bowstring)
endif()

install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" COMPONENT bowstring
        FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp")

configure_package_config_file(
  "${PROJECT_SOURCE_DIR}/cmake/bowstringConfig.cmake.in" "${PROJECT_BINARY_DIR}/bowstringConfig.cmake"
  INSTALL_DESTINATION "${bowstring_package_dir}" PATH_VARS CMAKE_INSTALL_LIBDIR CMAKE_INSTALL_INCLUDEDIR)
write_basic_package_version_file("${PROJECT_BINARY_DIR}/bowstringConfigVersion.cmake" VERSION "${PROJECT_VERSION}"
                                 COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/bowstringConfig.cmake" "${PROJECT_BINARY_DIR}/bowstringConfigVersion.cmake"
        DESTINATION "${bowstring_package_dir}" COMPONENT bowstring)

# pkg-config knows where its file lies, and from there the way to the prefix.
if(IS_ABSOLUTE "${CMAKE_INSTALL_LIBDIR}")
  set(bowstring_pc_prefix "${CMAKE_INSTALL_PREFIX}")
else()
  file(RELATIVE_PATH way_up "${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "${CMAKE_INSTALL_PREFIX}")
  string(REGEX REPLACE "/$" "" way_up "${way_up}")
  set(bowstring_pc_prefix "\${pcfiledir}/${way_up}")
endif()
foreach(kind LIBDIR INCLUDEDIR)
  if(IS_ABSOLUTE "${CMAKE_INSTALL_${kind}}")
    set(bowstring_pc_${kind} "${CMAKE_INSTALL_${kind}}")
  else()
    set(bowstring_pc_${kind} "\${prefix}/${CMAKE_INSTALL_${kind}}")
  endif()
endforeach()
string(REPLACE ";" " " bowstring_pc_private "${bowstring_native_libs}")
configure_file("${PROJECT_SOURCE_DIR}/cmake/bowstring.pc.in" "${PROJECT_BINARY_DIR}/bowstring.pc" @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/bowstring.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig" COMPONENT bowstring)
