# Install rules, the CMake package and the pkg-config file. Everything finds its neighbours by relative paths: an installed
# tree can be moved.

include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(commitq_cmake_dir "${CMAKE_INSTALL_LIBDIR}/cmake/commitq")
set(commitq_pkgconfig_dir "${CMAKE_INSTALL_LIBDIR}/pkgconfig")

install(TARGETS commitq EXPORT commitqTargets)
install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/commitq" TYPE INCLUDE FILES_MATCHING PATTERN "*.h")
install(DIRECTORY "${PROJECT_SOURCE_DIR}/sql/" DESTINATION "${CMAKE_INSTALL_DATADIR}/commitq/sql"
        FILES_MATCHING PATTERN "*.sql")
install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" TYPE DOC)
if(COMMITQ_PROGRAMS)
  file(RELATIVE_PATH bin_to_lib "${CMAKE_INSTALL_FULL_BINDIR}" "${CMAKE_INSTALL_FULL_LIBDIR}")
  set_target_properties(commitq_cli PROPERTIES INSTALL_RPATH "$ORIGIN/${bin_to_lib}")
  install(TARGETS commitq_cli)
endif()

# Whoever links a static library links what it uses inside, too.
get_target_property(commitq_type commitq TYPE)
if(commitq_type STREQUAL "STATIC_LIBRARY")
  set(commitq_kind static)
  set(commitq_private_dependencies "find_dependency(fmt)\nfind_dependency(spdlog)\n")
  set(commitq_pc_requires ${MySQLClient_PKG_CONFIG_NAME} fmt spdlog)
else()
  set(commitq_kind shared)
  set(commitq_private_dependencies "")
  set(commitq_pc_requires ${MySQLClient_PKG_CONFIG_NAME})
endif()
list(JOIN commitq_pc_requires ", " commitq_pc_requires)

install(EXPORT commitqTargets NAMESPACE commitq:: DESTINATION "${commitq_cmake_dir}")
configure_package_config_file("${CMAKE_CURRENT_LIST_DIR}/commitqConfig.cmake.in"
  "${PROJECT_BINARY_DIR}/package/commitqConfig.cmake"
  INSTALL_DESTINATION "${commitq_cmake_dir}" NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file("${PROJECT_BINARY_DIR}/package/commitqConfigVersion.cmake"
  COMPATIBILITY SameMinorVersion)
install(FILES
  "${PROJECT_BINARY_DIR}/package/commitqConfig.cmake"
  "${PROJECT_BINARY_DIR}/package/commitqConfigVersion.cmake"
  "${CMAKE_CURRENT_LIST_DIR}/FindMySQLClient.cmake"
  DESTINATION "${commitq_cmake_dir}")

file(RELATIVE_PATH commitq_pc_to_prefix "/${commitq_pkgconfig_dir}" "/")
string(REGEX REPLACE "/$" "" commitq_pc_to_prefix "${commitq_pc_to_prefix}")
configure_file("${CMAKE_CURRENT_LIST_DIR}/commitq.pc.in" "${PROJECT_BINARY_DIR}/package/commitq.pc" @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/package/commitq.pc" DESTINATION "${commitq_pkgconfig_dir}")
