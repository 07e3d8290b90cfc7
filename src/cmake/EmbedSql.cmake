# embed_sql(OUTPUT file.cpp FILES a.sql b.sql): the numbered migrations as an array of raw strings.

function(embed_sql)
  cmake_parse_arguments(ARG "" "OUTPUT" "FILES" ${ARGN})
  list(SORT ARG_FILES)
  set(entries "")
  foreach(file IN LISTS ARG_FILES)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${file}")
    file(READ "${file}" text)
    get_filename_component(name "${file}" NAME)
    string(APPEND entries "    {\"${name}\", R\"sql(${text})sql\"},\n")
  endforeach()
  file(CONFIGURE OUTPUT "${ARG_OUTPUT}" CONTENT
"// Made by src/cmake/EmbedSql.cmake from sql/.
#include <schema/migrations.h>

namespace commitq::schema {

std::span<const Migration> migrations() {
    static constexpr Migration kMigrations[] = {
${entries}    };
    return kMigrations;
}

}  // namespace commitq::schema
" @ONLY)
endfunction()
