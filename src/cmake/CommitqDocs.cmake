# Target docs: the reference, made by Doxygen from the public headers; HTML in docs/html of the build folder. It fails on
# every warning, above all on a public name without documentation.

find_package(Doxygen REQUIRED)

set(commitq_docs_dir "${PROJECT_BINARY_DIR}/docs")
configure_file("${CMAKE_CURRENT_LIST_DIR}/Doxyfile.in" "${commitq_docs_dir}/Doxyfile" @ONLY)
add_custom_target(docs
  COMMAND Doxygen::doxygen "${commitq_docs_dir}/Doxyfile"
  WORKING_DIRECTORY "${commitq_docs_dir}"
  COMMENT "Reference in ${commitq_docs_dir}/html"
  VERBATIM)
