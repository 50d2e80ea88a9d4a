# Golden tests: the program's logits against the float64 oracle (tests/golden/), and the oracle against other programs.
# Tolerances are what the project promises (1e-4), or tighter where the model is tiny.
find_program(PYTHON3 python3 PATHS /usr/bin NO_DEFAULT_PATH)
if(NOT PYTHON3)
  message(FATAL_ERROR "/usr/bin/python3 is missing (try: scripts/install_packages.sh test)")
endif()

set(golden_dir ${PROJECT_SOURCE_DIR}/tests/golden)
set(golden_environment PYTHONDONTWRITEBYTECODE=1 OMP_NUM_THREADS=1)
add_test(NAME golden.oracle COMMAND ${PYTHON3} ${golden_dir}/check_oracle.py)
set_tests_properties(golden.oracle PROPERTIES LABELS golden TIMEOUT 120 ENVIRONMENT "${golden_environment}")

# kvasir_golden(NAME MODEL TOLERANCE [options of compare_logits.py]); a model that is absent is a skip.
function(kvasir_golden name model tolerance)
  add_test(NAME golden.${name} COMMAND ${PYTHON3} ${golden_dir}/compare_logits.py
    --program $<TARGET_FILE:kvasir> --model ${model} --tolerance ${tolerance} ${ARGN})
  set_tests_properties(golden.${name} PROPERTIES
    LABELS golden SKIP_RETURN_CODE 77 TIMEOUT 300 ENVIRONMENT "${golden_environment}")
endfunction()

kvasir_golden(tales tales 1e-4
  --ids 0,3071,17,402,402,4095,1,2200,909,58,3330,12,777,1500,2999,6,640,3581,44,1023,17)
kvasir_golden(tales_gpt2 tales-gpt2 1e-4
  --ids 0,915,4095,33,2048,2,1707,3600,71,510,71,2801,129,4000,8,1333,2490,611,3,3777,256)
kvasir_golden(stories260K data:models/stories260K/stories260K.bin 1e-4
  --ids 1,403,407,261,378,432,7,511,90,345,12,288,261,199,466,3,54,317,421,100,238)
kvasir_golden(stories260K_v1 data:models/stories260K/stories260K_v1.bin 1e-4
  --ids 1,385,328,432,261,280,305,330,272,414,444,5,511,66,139,201,377,14,493,250,81)
kvasir_golden(tiny_random_gpt2 data:models/tiny-random-gpt2 1e-6
  --ids 98,500,999,321,7,64,128,256,512,3,3,847,40,611,905,222,730,19,401,566,0)
kvasir_golden(gpt_nano_sort data:models/gpt-nano-sort 1e-5)

# Long enough to cross attention tiles (64 positions) and prefill chunks (256).
kvasir_golden(tales_300 tales 1e-4 --count 300)
kvasir_golden(tales_gpt2_300 tales-gpt2 1e-4 --count 300)
kvasir_golden(stories260K_300 data:models/stories260K/stories260K.bin 1e-4 --count 300)

# A window that is not the model's own, with and without sinks; stories260K's rotation pairs lie side by side.
kvasir_golden(tales_window tales 1e-4 --count 300 --window 64)
kvasir_golden(tales_window_sinks tales 1e-4 --count 300 --window 33 --sinks 64)
kvasir_golden(stories260K_window_sinks data:models/stories260K/stories260K.bin 1e-4 --count 300 --window 40 --sinks 4)

# A tiny random model of each family, some with windows, as a folder and as GGUF; 90 positions cross a tile. The oracle
# reads both.
set(tiny_models ${CMAKE_BINARY_DIR}/golden-tiny)
add_test(NAME golden.make_tiny COMMAND ${PYTHON3} ${golden_dir}/make_tiny.py ${tiny_models} --gguf)
set_tests_properties(golden.make_tiny PROPERTIES
  LABELS golden FIXTURES_SETUP tiny TIMEOUT 60 ENVIRONMENT "${golden_environment}")
foreach(model llama3-scaled llama-linear llama-v5 llama-text-config llama-biased mistral mistral-window qwen2
        qwen2-alternating qwen3 qwen3-upper-window phi3 phi3-window gpt2)
  string(REPLACE "-" "_" name tiny_${model})
  kvasir_golden(${name} ${tiny_models}/${model} 1e-4 --count 90)
  kvasir_golden(${name}_gguf ${tiny_models}/${model}.gguf 1e-4 --count 90)
  set_tests_properties(golden.${name} golden.${name}_gguf PROPERTIES FIXTURES_REQUIRED tiny)
endforeach()
kvasir_golden(tiny_random_llama_gguf data:models/tiny-random-llama-gguf/tiny-random-llama.gguf 1e-6 --count 90)

# Models of many families in both forms, against a float64 pass of each (family_forward.py).
add_test(NAME golden.families COMMAND ${PYTHON3} ${golden_dir}/compare_families.py $<TARGET_FILE:kvasir>
  ${CMAKE_BINARY_DIR}/golden-families)
add_test(NAME golden.families_long COMMAND ${PYTHON3} ${golden_dir}/compare_families.py $<TARGET_FILE:kvasir>
  ${CMAKE_BINARY_DIR}/golden-families-long --count 90 --seed 3)
set_tests_properties(golden.families golden.families_long PROPERTIES
  LABELS golden TIMEOUT 300 ENVIRONMENT "${golden_environment}")

add_test(NAME golden.gguf_receipts COMMAND ${PYTHON3} ${golden_dir}/compare_receipts.py
  --program $<TARGET_FILE:kvasir> --models ${tiny_models})
set_tests_properties(golden.gguf_receipts PROPERTIES
  LABELS golden FIXTURES_REQUIRED tiny TIMEOUT 120 ENVIRONMENT "${golden_environment}")

add_test(NAME golden.kv_types COMMAND ${PYTHON3} ${golden_dir}/compare_kv_types.py
  --program $<TARGET_FILE:kvasir> --models ${tiny_models})
set_tests_properties(golden.kv_types PROPERTIES
  LABELS golden FIXTURES_REQUIRED tiny TIMEOUT 120 ENVIRONMENT "${golden_environment}")

# Needs npm and the network once; the label slow keeps it out of short runs.
add_test(NAME golden.llama_cpp_ids COMMAND ${PYTHON3} ${golden_dir}/compare_llama_cpp.py
  --program $<TARGET_FILE:kvasir> --install ${CMAKE_BINARY_DIR}/llama_cpp)
set_tests_properties(golden.llama_cpp_ids PROPERTIES LABELS slow SKIP_REGULAR_EXPRESSION "^skipped: " TIMEOUT 400
  ENVIRONMENT "${golden_environment}")

add_test(NAME golden.quantized COMMAND ${PYTHON3} ${golden_dir}/compare_quantized.py --program $<TARGET_FILE:kvasir>)
set_tests_properties(golden.quantized PROPERTIES LABELS golden TIMEOUT 180 ENVIRONMENT "${golden_environment}")

# Every tensor and key of every small model is removed, renamed, changed, and joined by a stranger.
add_test(NAME regress.mutated_models COMMAND ${PYTHON3} ${PROJECT_SOURCE_DIR}/tests/regress/mutate_models.py
  --program $<TARGET_FILE:kvasir> --models ${tiny_models})
set_tests_properties(regress.mutated_models PROPERTIES
  LABELS slow FIXTURES_REQUIRED tiny TIMEOUT 600 PROCESSORS 2 ENVIRONMENT "${golden_environment}")

# Chat templates against python3-jinja2, and random programs; all templates where the folder of outside data is there.
add_executable(jinja_cases ${PROJECT_SOURCE_DIR}/tests/support/jinja_cases.cc)
target_include_directories(jinja_cases PRIVATE ${PROJECT_SOURCE_DIR}/src)
target_link_libraries(jinja_cases PRIVATE kvasir_lib fmt::fmt nlohmann_json::nlohmann_json)
add_test(NAME golden.templates COMMAND ${PYTHON3} ${golden_dir}/compare_templates.py --program $<TARGET_FILE:jinja_cases>
  --edge)
set_tests_properties(golden.templates PROPERTIES LABELS golden TIMEOUT 900 ENVIRONMENT "${golden_environment}")
