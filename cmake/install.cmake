# Installation: program, libraries, headers, models, and what find_package(kvasir) and pkg-config read.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/kvasir)
set(models_dir ${CMAKE_INSTALL_DATADIR}/kvasir/models)

install(TARGETS kvasir RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(TARGETS kvasir_lib EXPORT kvasirStatic ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(EXPORT kvasirStatic NAMESPACE kvasir:: DESTINATION ${package_dir})
if(KVASIR_SHARED)
  install(TARGETS kvasir_shared EXPORT kvasirShared LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
  install(EXPORT kvasirShared NAMESPACE kvasir:: DESTINATION ${package_dir})
endif()
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/kvasir DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/models/ DESTINATION ${models_dir} PATTERN "train" EXCLUDE)

configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/kvasirConfig.cmake.in ${PROJECT_BINARY_DIR}/kvasirConfig.cmake
  INSTALL_DESTINATION ${package_dir} PATH_VARS models_dir)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/kvasirConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/kvasirConfig.cmake ${PROJECT_BINARY_DIR}/kvasirConfigVersion.cmake
  DESTINATION ${package_dir})
install(FILES ${PROJECT_SOURCE_DIR}/cmake/libraries.cmake DESTINATION ${package_dir} RENAME kvasirLibraries.cmake)
file(RELATIVE_PATH up_from_pkgconfig "/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/")
configure_file(${PROJECT_SOURCE_DIR}/cmake/kvasir.pc.in ${PROJECT_BINARY_DIR}/kvasir.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/kvasir.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
