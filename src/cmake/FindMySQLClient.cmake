# MySQL::Client: libmysqlclient or MariaDB Connector/C, by pkg-config `mysqlclient`, then `libmariadb`.
# Used by the build and, installed beside the package file, by those who find_package(commitq).
#
# Sets MySQLClient_FOUND, MySQLClient_VERSION and MySQLClient_PKG_CONFIG_NAME. A target MySQL::Client that is already
# there, from an enclosing project, is taken as it is.

if(TARGET MySQL::Client)
  set(MySQLClient_FOUND TRUE)
  return()
endif()

find_package(PkgConfig QUIET)
if(PKG_CONFIG_FOUND)
  pkg_search_module(PC_MYSQL_CLIENT QUIET mysqlclient libmariadb)
  set(MySQLClient_VERSION "${PC_MYSQL_CLIENT_VERSION}")
  set(MySQLClient_PKG_CONFIG_NAME "${PC_MYSQL_CLIENT_MODULE_NAME}")
  set(missing "neither mysqlclient.pc nor libmariadb.pc is on its path")
else()
  set(missing "there is no pkg-config")
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(MySQLClient
  REQUIRED_VARS PC_MYSQL_CLIENT_LINK_LIBRARIES
  VERSION_VAR MySQLClient_VERSION
  REASON_FAILURE_MESSAGE "No MySQL client library: pkg-config is asked for it, and ${missing}. Debian and Ubuntu have it \
in default-libmysqlclient-dev (MariaDB Connector/C) and libmysqlclient-dev (MySQL), and pkg-config in pkgconf")
unset(missing)

# Include folders and libraries only: what compile and link flags a client library was itself built with, some .pc files
# repeat, and they are none of our users' business. The folders of an imported target are system ones: no warnings.
if(MySQLClient_FOUND)
  add_library(MySQL::Client INTERFACE IMPORTED)
  target_include_directories(MySQL::Client INTERFACE ${PC_MYSQL_CLIENT_INCLUDE_DIRS})
  target_link_libraries(MySQL::Client INTERFACE ${PC_MYSQL_CLIENT_LINK_LIBRARIES})
endif()
