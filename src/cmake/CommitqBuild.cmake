# Dependencies and compile settings shared by all targets.

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES AND PROJECT_IS_TOP_LEVEL)
  set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "" FORCE)
endif()
if(PROJECT_IS_TOP_LEVEL)
  set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
endif()

find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)
find_package(MySQLClient REQUIRED)

# Warnings and sanitizers; for our own targets only, never for those who link the library.
add_library(commitq_settings INTERFACE)
target_compile_options(commitq_settings INTERFACE
  -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wnon-virtual-dtor -Wold-style-cast
  $<$<CXX_COMPILER_ID:Clang>:-Wthread-safety>
  $<$<BOOL:${COMMITQ_WERROR}>:-Werror>)
if(COMMITQ_FUZZ)
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    message(FATAL_ERROR "COMMITQ_FUZZ needs clang, for its libFuzzer; this is ${CMAKE_CXX_COMPILER_ID}. Set CXX=clang++ and "
                        "take a fresh build folder.")
  endif()
  # libFuzzer is led by what its input makes the library do, so that is instrumented too.
  target_compile_options(commitq_settings INTERFACE -fsanitize=fuzzer-no-link)
  if(NOT COMMITQ_SANITIZE)
    set(COMMITQ_SANITIZE address,undefined)
  endif()
endif()
if(COMMITQ_SANITIZE)
  target_compile_options(commitq_settings INTERFACE -fsanitize=${COMMITQ_SANITIZE} -fno-omit-frame-pointer
                                                    -fno-sanitize-recover=all)
  target_compile_definitions(commitq_settings INTERFACE _GLIBCXX_ASSERTIONS)
  target_link_options(commitq_settings INTERFACE -fsanitize=${COMMITQ_SANITIZE})
endif()
