# End-to-end tests that drive the programs from Python. Long ones are `slow`; those that need NumPy (to write GGUF) are
# `golden`, as their like.
add_test(NAME e2e.smollm2_memory COMMAND ${PYTHON3} ${PROJECT_SOURCE_DIR}/tests/e2e/smollm2_memory.py
  --program $<TARGET_FILE:kvasir> --table ${PROJECT_SOURCE_DIR}/scripts/kv_table.py --budget-runs $<TARGET_FILE:budget_runs>)
set_tests_properties(e2e.smollm2_memory PROPERTIES LABELS slow SKIP_RETURN_CODE 77 TIMEOUT 1200 RUN_SERIAL ON
  ENVIRONMENT PYTHONDONTWRITEBYTECODE=1)
add_test(NAME e2e.bench_compare COMMAND ${PYTHON3} ${PROJECT_SOURCE_DIR}/tests/e2e/bench_compare.py
  --program $<TARGET_FILE:kvasir>)
set_tests_properties(e2e.bench_compare PROPERTIES LABELS golden TIMEOUT 300 ENVIRONMENT PYTHONDONTWRITEBYTECODE=1)
# A preload that makes reads fail; sanitizers bring preloads of their own.
if(NOT CMAKE_CXX_FLAGS MATCHES "-fsanitize")
  add_library(faulty_io MODULE ${PROJECT_SOURCE_DIR}/tests/e2e/faulty_io.cc)
  set_target_properties(faulty_io PROPERTIES PREFIX "")
  add_test(NAME e2e.io_faults COMMAND ${PYTHON3} ${PROJECT_SOURCE_DIR}/tests/e2e/io_faults.py
    --program $<TARGET_FILE:kvasir> --preload $<TARGET_FILE:faulty_io>)
  set_tests_properties(e2e.io_faults PROPERTIES LABELS slow TIMEOUT 120 ENVIRONMENT PYTHONDONTWRITEBYTECODE=1)
endif()
add_test(NAME e2e.chat_pty COMMAND ${PYTHON3} ${PROJECT_SOURCE_DIR}/tests/e2e/chat_pty_test.py
  --program $<TARGET_FILE:kvasir>)
set_tests_properties(e2e.chat_pty PROPERTIES LABELS slow TIMEOUT 300 ENVIRONMENT PYTHONDONTWRITEBYTECODE=1)
# A third of a minute of requests; half an hour with KVASIR_TEST_ALL.
add_test(NAME e2e.soak COMMAND ${PYTHON3} ${PROJECT_SOURCE_DIR}/tests/load/soak.py --program $<TARGET_FILE:kvasir>)
set_tests_properties(e2e.soak PROPERTIES LABELS slow TIMEOUT 2400 ENVIRONMENT PYTHONDONTWRITEBYTECODE=1)
add_test(NAME e2e.memory_over_time COMMAND ${PYTHON3} ${PROJECT_SOURCE_DIR}/bench/memory_over_time
  --kvasir $<TARGET_FILE:kvasir> --model ${PROJECT_SOURCE_DIR}/models/tales --out ${CMAKE_BINARY_DIR}/memory_over_time
  -- -p Hello -n 8 --greedy)
set_tests_properties(e2e.memory_over_time PROPERTIES LABELS fast TIMEOUT 60)
add_executable(budget_runs ${PROJECT_SOURCE_DIR}/tests/e2e/budget_runs.cc)
target_include_directories(budget_runs PRIVATE ${PROJECT_SOURCE_DIR}/src)
target_link_libraries(budget_runs PRIVATE kvasir_lib fmt::fmt)
target_compile_options(budget_runs PRIVATE -O1)
if(NOT CMAKE_CXX_FLAGS MATCHES "-fsanitize")  # which have their own idea of memory
  add_test(NAME e2e.budget_runs COMMAND budget_runs ${PROJECT_SOURCE_DIR}/models/tales 27000000 60 1)
  set_tests_properties(e2e.budget_runs PROPERTIES LABELS slow TIMEOUT 300)
endif()
if(KVASIR_SHARED)
  add_test(NAME e2e.install COMMAND ${PYTHON3} ${PROJECT_SOURCE_DIR}/tests/e2e/install_test.py --build ${CMAKE_BINARY_DIR})
  set_tests_properties(e2e.install PROPERTIES LABELS slow PROCESSORS 2 TIMEOUT 300 ENVIRONMENT PYTHONDONTWRITEBYTECODE=1)
endif()
# The server, over loopback: what stands on the wire, real clients (npm's and aiohttp), a crowd whose answers are compared
# with those alone, clients that do harm. Tests with time limits of their own have the machine to themselves.
foreach(test clients/contract_test clients/contrib_test load/serve_load load/serve_faults)
  get_filename_component(name ${test} NAME)
  add_test(NAME e2e.${name} COMMAND ${PYTHON3} ${PROJECT_SOURCE_DIR}/tests/${test}.py --program $<TARGET_FILE:kvasir>)
  set_tests_properties(e2e.${name} PROPERTIES LABELS slow TIMEOUT 1200 SKIP_RETURN_CODE 77
    ENVIRONMENT "PYTHONDONTWRITEBYTECODE=1;KVASIR_MODELS=${PROJECT_SOURCE_DIR}/models")
endforeach()
set_tests_properties(e2e.contract_test e2e.serve_faults PROPERTIES RUN_SERIAL ON)
# A hub on loopback that misbehaves, and pulls that are killed: 15 times, 100 with KVASIR_TEST_ALL.
foreach(test pull_test pull_kills)
  add_test(NAME e2e.${test} COMMAND ${PYTHON3} ${PROJECT_SOURCE_DIR}/tests/hub/${test}.py --program $<TARGET_FILE:kvasir>)
  set_tests_properties(e2e.${test} PROPERTIES LABELS slow TIMEOUT 600 ENVIRONMENT PYTHONDONTWRITEBYTECODE=1)
endforeach()
add_test(NAME e2e.clients COMMAND ${PYTHON3} ${PROJECT_SOURCE_DIR}/tests/clients/clients_test.py
  --program $<TARGET_FILE:kvasir> --work ${CMAKE_BINARY_DIR}/clients)
set_tests_properties(e2e.clients PROPERTIES LABELS slow TIMEOUT 300 SKIP_RETURN_CODE 77 ENVIRONMENT PYTHONDONTWRITEBYTECODE=1)
