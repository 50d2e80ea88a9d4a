# Flags that the Law depends on come first: no contraction, no fast-math (docs/numerics.md).
add_compile_options(-ffp-contract=off -fno-fast-math)
if(KVASIR_DEV)
  # Our asserts are compiled, fmt's are not: with them GCC 12 sees an overflow in it that is none.
  add_compile_options("-DFMT_ASSERT(condition,message)=static_cast<void>(0)")
  # GCC 12 sees an overlap of half the address space in "text" + std::string() (its bug 105651).
  add_compile_options(-Wall -Wextra -Wconversion -Wshadow -Werror $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>)
endif()
