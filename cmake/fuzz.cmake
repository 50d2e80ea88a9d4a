# Fuzz targets, one per tests/fuzz/fuzz_*.cc, over the whole library built with the sanitizers:
# cmake -DKVASIR_FUZZ=ON -DCMAKE_CXX_COMPILER=clang++, then tests/fuzz/run.sh BUILD_FOLDER.
if(NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  message(FATAL_ERROR "KVASIR_FUZZ needs clang (libFuzzer): configure with -DCMAKE_CXX_COMPILER=clang++")
endif()

set(fuzz_sanitizers -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer)

# The part of the server that reads requests, without sockets.
file(GLOB request_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/serve/*json.cc ${PROJECT_SOURCE_DIR}/src/serve/api/*.cc
  ${PROJECT_SOURCE_DIR}/src/serve/http/message.cc)
list(FILTER request_sources EXCLUDE REGEX "_test\\.cc$")
add_library(kvasir_fuzz_lib STATIC EXCLUDE_FROM_ALL ${sources} ${request_sources})
kvasir_library_properties(kvasir_fuzz_lib)
set_target_properties(kvasir_fuzz_lib PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
target_include_directories(kvasir_fuzz_lib PUBLIC ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/src ${PROJECT_BINARY_DIR})
target_compile_options(kvasir_fuzz_lib PUBLIC -O1 ${fuzz_sanitizers} PRIVATE -fsanitize=fuzzer-no-link)
target_link_options(kvasir_fuzz_lib PUBLIC ${fuzz_sanitizers})

# No target computes anything, and clang takes three minutes for each of these with the sanitizers.
file(GLOB kernels ${PROJECT_SOURCE_DIR}/src/math/kernels_*.cc)
set_source_files_properties(${kernels} PROPERTIES COMPILE_OPTIONS -fno-sanitize=all)

file(GLOB fuzz_targets CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/fuzz/fuzz_*.cc)
add_custom_target(fuzzers)
foreach(source ${fuzz_targets})
  get_filename_component(name ${source} NAME_WE)
  add_executable(${name} EXCLUDE_FROM_ALL ${source})
  target_link_libraries(${name} PRIVATE kvasir_fuzz_lib)
  target_compile_options(${name} PRIVATE -fsanitize=fuzzer)
  target_link_options(${name} PRIVATE -fsanitize=fuzzer)
  add_dependencies(fuzzers ${name})
endforeach()
