# The library (everything but the command line), the program, its link `llm`, and installation.
file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/*.cc)
list(FILTER sources EXCLUDE REGEX "_test\\.cc$|/src/cli/")

# Sanitizers take minutes for such a file with all its loops unrolled.
set(kernels_level -O3)
if(CMAKE_CXX_FLAGS MATCHES "-fsanitize")
  set(kernels_level -O1)
endif()
# One file per CPU target; everything else is built for the baseline so that an old CPU gets a sentence, not a SIGILL.
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  set(avx2 "-mavx2 -mfma -mf16c -mbmi2")
  set_source_files_properties(${PROJECT_SOURCE_DIR}/src/math/kernels_avx2.cc PROPERTIES COMPILE_FLAGS "${avx2} ${kernels_level}")
  set_source_files_properties(${PROJECT_SOURCE_DIR}/src/math/kernels_avx512.cc PROPERTIES COMPILE_FLAGS
    "${avx2} -mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx512vnni -mprefer-vector-width=512 ${kernels_level}")
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64|arm64")
  set_source_files_properties(${PROJECT_SOURCE_DIR}/src/math/kernels_neon.cc PROPERTIES COMPILE_FLAGS ${kernels_level})
endif()

# What everything that compiles the sources needs: the library, and the fuzz targets' own build of it.
function(kvasir_library_properties target)
  target_include_directories(${target} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> PRIVATE ${PROJECT_SOURCE_DIR}/src ${PROJECT_BINARY_DIR})
  target_link_libraries(${target} PUBLIC Threads::Threads
    PRIVATE fmt::fmt nlohmann_json::nlohmann_json PkgConfig::PCRE2 PkgConfig::XXHASH PkgConfig::URING PkgConfig::UTF8PROC sentencepiece)
  target_compile_definitions(${target} PRIVATE KVASIR_VERSION="${PROJECT_VERSION}")
endfunction()

add_library(kvasir_lib STATIC ${sources})
set_target_properties(kvasir_lib PROPERTIES OUTPUT_NAME kvasir)
kvasir_library_properties(kvasir_lib)

file(GLOB cli_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/cli/*.cc)
list(FILTER cli_sources EXCLUDE REGEX "_test\\.cc$")
add_executable(kvasir ${cli_sources})
target_include_directories(kvasir PRIVATE ${PROJECT_SOURCE_DIR}/src ${PROJECT_BINARY_DIR})
target_link_libraries(kvasir PRIVATE kvasir_lib fmt::fmt CLI11::CLI11 nlohmann_json::nlohmann_json PkgConfig::EDIT)
# Option parsing and JSON: the optimiser's time buys nothing there, and under sanitizers their headers take five minutes.
if(CMAKE_CXX_FLAGS MATCHES "-fsanitize")
  target_compile_options(kvasir PRIVATE -O0 -fno-sanitize=undefined)
else()
  target_compile_options(kvasir PRIVATE -O1)
endif()
target_compile_definitions(kvasir PRIVATE KVASIR_VERSION="${PROJECT_VERSION}")
add_custom_command(TARGET kvasir POST_BUILD COMMAND ${CMAKE_COMMAND} -E create_symlink kvasir llm
  WORKING_DIRECTORY $<TARGET_FILE_DIR:kvasir>)

include(GNUInstallDirs)
install(TARGETS kvasir RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(TARGETS kvasir_lib ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/kvasir DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/models/ DESTINATION ${CMAKE_INSTALL_DATADIR}/kvasir/models
  PATTERN "train" EXCLUDE)
