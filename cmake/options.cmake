# The Law requires these flags: no contraction, no fast-math (docs/numerics.md).
add_compile_options(-ffp-contract=off -fno-fast-math)
if(KVASIR_DEV)
  # Kvasir's asserts are compiled, fmt's are not: with them GCC 12 falsely reports an overflow in fmt.
  add_compile_options("-DFMT_ASSERT(condition,message)=static_cast<void>(0)")
  # GCC 12 falsely reports an overlap of half the address space in "text" + std::string() (its bug 105651).
  add_compile_options(-Wall -Wextra -Wconversion -Wshadow -Werror $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>)
endif()
