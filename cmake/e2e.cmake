# End-to-end tests that drive the programs from Python. Long ones are `slow`; those that need NumPy (to write GGUF) are
# `golden`, as their like.
add_test(NAME e2e.smollm2_memory COMMAND ${PYTHON3} ${PROJECT_SOURCE_DIR}/tests/e2e/smollm2_memory.py
  --program $<TARGET_FILE:kvasir> --table ${PROJECT_SOURCE_DIR}/scripts/kv_table.py)
set_tests_properties(e2e.smollm2_memory PROPERTIES LABELS slow SKIP_RETURN_CODE 77 TIMEOUT 1200 RUN_SERIAL ON
  ENVIRONMENT PYTHONDONTWRITEBYTECODE=1)
add_test(NAME e2e.bench_compare COMMAND ${PYTHON3} ${PROJECT_SOURCE_DIR}/tests/e2e/bench_compare.py
  --program $<TARGET_FILE:kvasir>)
set_tests_properties(e2e.bench_compare PROPERTIES LABELS golden TIMEOUT 300 ENVIRONMENT PYTHONDONTWRITEBYTECODE=1)
