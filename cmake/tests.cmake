# Unit tests sit beside their sources; a suite whose name starts with Threads carries the label `threads` (what TSan
# runs), one that starts with Slow the label `slow`, one that starts with Golden the label `golden`; the rest is `fast`.
find_package(GTest REQUIRED)
include(GoogleTest)

file(GLOB_RECURSE test_sources CONFIGURE_DEPENDS
  ${PROJECT_SOURCE_DIR}/src/*_test.cc ${PROJECT_SOURCE_DIR}/tests/*_test.cc)
if(KVASIR_THREADS_ONLY)
  foreach(source ${test_sources})
    file(STRINGS ${source} suites REGEX "^TEST(_P|_F)?\\(Threads" LIMIT_COUNT 1)
    if(NOT suites)
      list(REMOVE_ITEM test_sources ${source})
    endif()
  endforeach()
endif()
option(KVASIR_NO_PROGRAM "Tests that run the program are left out" OFF)
set(e2e_sources ${test_sources})
list(FILTER e2e_sources INCLUDE REGEX "/tests/e2e/")
list(FILTER test_sources EXCLUDE REGEX "/tests/e2e/")

# A precompiled header for each: GoogleTest's take four seconds of every file. ccache needs -fpch-preprocess for it.
function(kvasir_test_properties target)
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR})
  target_link_libraries(${target} PRIVATE kvasir_serve kvasir_hub kvasir_lib GTest::gmock GTest::gtest GTest::gtest_main
    fmt::fmt nlohmann_json::nlohmann_json PkgConfig::PCRE2 PkgConfig::XXHASH)
  # Tests find the program, the shipped models and, where it exists, the folder of outside data through these.
  target_compile_definitions(${target} PRIVATE
    KVASIR_SOURCE_DIR="${PROJECT_SOURCE_DIR}" KVASIR_PROGRAM="$<TARGET_FILE:kvasir>")
  target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-fpch-preprocess>)
  target_precompile_headers(${target} PRIVATE <gmock/gmock.h> <gtest/gtest.h> <fmt/format.h> <tl/expected.hpp>
    <algorithm> <filesystem> <fstream> <functional> <map> <random> <span> <sstream> <string> <vector> ${ARGN})
endfunction()

# The parts of the command line that are tested without the program.
set(tested_cli json parameter_names sampling_names conversation conversation_file conversation_format)
list(TRANSFORM tested_cli REPLACE "(.+)" "${PROJECT_SOURCE_DIR}/src/cli/\\1.cc")
add_executable(kvasir_tests ${test_sources} ${tested_cli})
kvasir_test_properties(kvasir_tests)
# The tests link the library as it ships. Under a sanitizer the tests' own code is compiled in a hurry: not
# optimised, and not instrumented for undefined behaviour, it takes half of the time.
if(CMAKE_CXX_FLAGS MATCHES "-fsanitize")
  target_compile_options(kvasir_tests PRIVATE -O0 -fno-sanitize=undefined)
  # The CPU's own functions take numbers that are constants only once they are inlined.
  set(simd_tests ${test_sources})
  list(FILTER simd_tests INCLUDE REGEX "/math/simd/")
  set_source_files_properties(${simd_tests} PROPERTIES COMPILE_OPTIONS -O1 SKIP_PRECOMPILE_HEADERS ON)
else()
  target_compile_options(kvasir_tests PRIVATE -O1)
endif()
if(e2e_sources AND NOT KVASIR_NO_PROGRAM)
  # These only start the program and read what it says.
  add_library(kvasir_e2e_tests OBJECT ${e2e_sources})
  kvasir_test_properties(kvasir_e2e_tests <nlohmann/json.hpp>)
  target_compile_options(kvasir_e2e_tests PRIVATE -O0 -fno-sanitize=undefined)
  target_link_libraries(kvasir_tests PRIVATE kvasir_e2e_tests)
  add_dependencies(kvasir_tests kvasir)
endif()

# Starting the program costs more than most tests do: the fast ones share a few processes.
set(shards 16)
math(EXPR last_shard "${shards} - 1")
foreach(shard RANGE ${last_shard})
  add_test(NAME fast.${shard} COMMAND kvasir_tests --gtest_filter=-Threads*:Slow*:Golden*)
  set_tests_properties(fast.${shard} PROPERTIES LABELS fast TIMEOUT 300
    ENVIRONMENT "GTEST_TOTAL_SHARDS=${shards};GTEST_SHARD_INDEX=${shard}")
endforeach()
gtest_discover_tests(kvasir_tests TEST_FILTER "Threads*" PROPERTIES LABELS threads DISCOVERY_TIMEOUT 60)
gtest_discover_tests(kvasir_tests TEST_FILTER "Golden*" PROPERTIES LABELS golden DISCOVERY_TIMEOUT 60)
gtest_discover_tests(kvasir_tests TEST_FILTER "Slow*" PROPERTIES LABELS slow TIMEOUT 1500 DISCOVERY_TIMEOUT 60)

include(cmake/golden.cmake)
include(cmake/neon.cmake)
include(cmake/e2e.cmake)

# Built on demand: cmake --build build-dev --target kvasir_bench_kernels
find_package(benchmark REQUIRED)
add_executable(kvasir_bench_kernels EXCLUDE_FROM_ALL ${PROJECT_SOURCE_DIR}/bench/kernels.cc)
target_include_directories(kvasir_bench_kernels PRIVATE ${PROJECT_SOURCE_DIR}/src)
target_link_libraries(kvasir_bench_kernels PRIVATE kvasir_lib benchmark::benchmark fmt::fmt)
