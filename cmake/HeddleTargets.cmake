# What every target of the project has in common, and the functions that declare libraries and tests.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE RelWithDebInfo)
endif()

# Line tables are what a profile or a back trace needs; full debug information is the debug preset's, and
# costs a quarter of the build.
set(CMAKE_C_FLAGS_RELWITHDEBINFO "-O2 -g1 -DNDEBUG")
set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O2 -g1 -DNDEBUG")

set(HEDDLE_SANITIZE "" CACHE STRING "Sanitizers for Heddle's own code, as for -fsanitize=")

add_library(heddle_warnings INTERFACE)
target_compile_options(heddle_warnings INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion -Wnon-virtual-dtor -Werror)
if(CMAKE_CXX_COMPILER_ID STREQUAL Clang)
  # libstdc++ 12's stable_sort calls a function it marks as deprecated; clang blames the caller.
  target_compile_options(heddle_warnings INTERFACE -Wno-deprecated-declarations)
endif()
target_include_directories(heddle_warnings INTERFACE ${PROJECT_SOURCE_DIR}/src)

add_library(heddle_options INTERFACE)
target_link_libraries(heddle_options INTERFACE heddle_warnings)
# Nobody replaces a function of ours: calls within a file need not allow for it.
target_compile_options(heddle_options INTERFACE -fno-semantic-interposition)
if(HEDDLE_SANITIZE)
  target_compile_options(heddle_options INTERFACE
    -fsanitize=${HEDDLE_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(heddle_options INTERFACE -fsanitize=${HEDDLE_SANITIZE})
  if(HEDDLE_SANITIZE MATCHES undefined AND CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    # gcc takes temporaries of its own checks for variables that nobody set.
    target_compile_options(heddle_options INTERFACE -Wno-maybe-uninitialized)
  endif()
endif()

# heddle_library(NAME SOURCES… DEPENDS…): one library of src/, named heddle_NAME.
function(heddle_library name)
  cmake_parse_arguments(arg "" "" "SOURCES;DEPENDS" ${ARGN})
  add_library(heddle_${name} STATIC ${arg_SOURCES})
  target_link_libraries(heddle_${name} PRIVATE heddle_options PUBLIC ${arg_DEPENDS})
  target_include_directories(heddle_${name} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/src>)
endfunction()

# heddle_test(NAME SOURCES… DEPENDS…): a GoogleTest program, one ctest per program. Random tests take the same seed
# every time, so that one tree has one verdict; run by hand, without the variables, they take another each time.
function(heddle_test name)
  cmake_parse_arguments(arg "" "" "SOURCES;DEPENDS" ${ARGN})
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE heddle_options ${arg_DEPENDS} GTest::gtest_main)
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES ENVIRONMENT "HEDDLE_TEST_SEED=1;RC_PARAMS=seed=1")
  if(HEDDLE_SANITIZE)
    # The twins on random programs take a quarter of an hour and more there; ctest ends a test after 25 minutes.
    set_tests_properties(${name} PROPERTIES TIMEOUT 7200)
  endif()
endfunction()
