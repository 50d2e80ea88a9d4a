# Tests NEON without an Arm machine: Debian's cross compiler builds tests/neon, and qemu-user runs the kernels' own
# tests and the receipts of weight and KV types on every CPU target. Without these packages one skipped test says so.
find_program(AARCH64_COMPILER aarch64-linux-gnu-g++)
find_program(QEMU_AARCH64 NAMES qemu-aarch64-static qemu-aarch64)
if(NOT AARCH64_COMPILER OR NOT QEMU_AARCH64)
  add_test(NAME golden.neon COMMAND ${CMAKE_COMMAND} -E echo
    "skipped: no aarch64-linux-gnu-g++ or no qemu-aarch64-static (try: scripts/install_packages.sh test)")
  set_tests_properties(golden.neon PROPERTIES LABELS golden SKIP_REGULAR_EXPRESSION "^skipped: ")
  return()
endif()

set(neon_dir ${CMAKE_BINARY_DIR}/neon)
set(neon_run ${QEMU_AARCH64} -L /usr/aarch64-linux-gnu)
add_test(NAME golden.neon_build COMMAND sh -c
  "cmake -S '${PROJECT_SOURCE_DIR}/tests/neon' -B '${neon_dir}' -G Ninja && cmake --build '${neon_dir}' -j 2")
add_test(NAME golden.neon_kernels COMMAND ${neon_run} ${neon_dir}/neon_tests --gtest_brief=1)
add_test(NAME golden.neon_receipts COMMAND ${PYTHON3} ${golden_dir}/compare_targets.py
  --program $<TARGET_FILE:kvasir> --arm ${neon_run} ${neon_dir}/neon_receipts)
set_tests_properties(golden.neon_build PROPERTIES LABELS golden FIXTURES_SETUP neon PROCESSORS 2 TIMEOUT 900)
set_tests_properties(golden.neon_kernels golden.neon_receipts PROPERTIES LABELS golden FIXTURES_REQUIRED neon
  TIMEOUT 300 ENVIRONMENT "${golden_environment}")
