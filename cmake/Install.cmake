# Installs libraries, headers, the CMake package and the pkg-config file. Every path in them is relative, so that the
# prefix can be moved.

include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(bowstring_package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/bowstring")
install(PROGRAMS "${bowstring_shared_dir}/${bowstring_real_name}" DESTINATION "${CMAKE_INSTALL_LIBDIR}"
        COMPONENT bowstring)
foreach(link "${bowstring_soname}" "${bowstring_link_name}")
  if(NOT link STREQUAL bowstring_real_name)
    install(FILES "${bowstring_shared_dir}/${link}" DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT bowstring)
  endif()
endforeach()

if(BOWSTRING_INSTALL_STATIC)
  install(FILES "${bowstring_static_named}" DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT bowstring)
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
string(REPLACE ";" " " bowstring_pc_private "${bowstring_static_options};${bowstring_native_libs}")
configure_file("${PROJECT_SOURCE_DIR}/cmake/bowstring.pc.in" "${PROJECT_BINARY_DIR}/bowstring.pc" @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/bowstring.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig" COMPONENT bowstring)
