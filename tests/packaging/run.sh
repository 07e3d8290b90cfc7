#!/usr/bin/env bash
# Usage: run.sh BUILD_DIR KIND VERSION
#
# Installs commitq and uses it from outside: BUILD_DIR's library, which is of KIND (static or shared), by find_package and by
# pkg-config; then the other kind, built by a project that has commitq as a subdirectory, from there and installed. Works in
# the current folder. Environment: CXX, CXXFLAGS, CMAKE_* as for cmake.
set -euo pipefail
build=$1 kind=$2 version=$3
here=$(dirname "$(realpath "${BASH_SOURCE[0]}")")
repo=$(realpath "$here/../..")
scratch=$PWD/scratch
subproject=$PWD/subproject  # Stays, so that the next run doesn't compile the library again.
export CMAKE_BUILD_PARALLEL_LEVEL=${CMAKE_BUILD_PARALLEL_LEVEL:-$(nproc)}

fail() {
  echo "packaging: $*" >&2
  exit 1
}

run_consumer() {
  local printed
  printed=$("$@") || fail "$1 failed"
  [[ $printed == "$version" ]] || fail "$1 printed '$printed', not $version"
}

# install_tree BUILD_DIR PREFIX. It is moved afterwards, so that nothing can lean on where it was installed.
install_tree() {
  cmake --install "$1" --prefix "$scratch/before-the-move" >/dev/null
  mv "$scratch/before-the-move" "$2"
  local leak file
  for leak in "$repo" "$scratch" "$1" commitq_settings; do
    ! grep -rIF "$leak" "$2" --include='*.cmake' --include='*.pc' >&2 || fail "an installed file names $leak"
  done
  for file in bin/commitq include/commitq/commitq.h include/commitq/interop/mysql.h share/commitq/sql; do
    [[ -e $2/$file ]] || fail "$file is not installed"
  done
  "$2/bin/commitq" --version | grep -qF "$version" || fail "the installed program doesn't know its version"
}

consume_by_find_package() {
  local dir=$1-find_package
  cmake -S "$here/find_package" -B "$dir" -DCMAKE_PREFIX_PATH="$1" -DCOMMITQ_VERSION="$version" >/dev/null
  cmake --build "$dir" >/dev/null
  run_consumer "$dir/consumer"
}

consume_by_pkg_config() {
  local -x PKG_CONFIG_PATH
  local pc flags
  pc=$(find "$1" -name commitq.pc)
  [[ $pc ]] || fail "commitq.pc is not installed"
  PKG_CONFIG_PATH=$(dirname "$pc"):${PKG_CONFIG_PATH-}
  [[ $(pkg-config --modversion commitq) == "$version" ]] || fail "commitq.pc has another version"
  read -ra flags <<<"${CXXFLAGS-} $(pkg-config --cflags --libs commitq)"
  "${CXX:-c++}" -std=c++20 -o "$1-pkg-config" "$here/consumer.cpp" "${flags[@]}"
  LD_LIBRARY_PATH=$(pkg-config --variable=libdir commitq) run_consumer "$1-pkg-config"
}

# The library's ABI is what the public headers mark: no symbol of its inner layers, nor of the libraries it uses. Weak symbols
# of others are copies of templates and inline functions.
check_shared_library() {
  local library soname inner others
  library=$(find "$1" -name libcommitq.so)
  [[ $library ]] || fail "libcommitq.so is not installed"
  soname=$(readelf -d "$library" | sed -n 's/.*(SONAME).*\[\(.*\)\]/\1/p')
  [[ $soname == "libcommitq.so.${version%.*}" ]] || fail "the SONAME is '$soname'"
  [[ -e $(dirname "$library")/$soname ]] || fail "$soname is not installed"

  nm --dynamic --demangle --defined-only "$library" >"$scratch/symbols"
  local of='((vtable|VTT|typeinfo|typeinfo name|guard variable) for |(non-)?virtual thunk to )?'
  grep -qE " T commitq::Queue::enqueue\(" "$scratch/symbols" || fail "Queue::enqueue is not exported"
  inner=$(grep -E " [A-Za-z] ${of}commitq::[a-z_]+::" "$scratch/symbols" | grep -vE " ${of}commitq::testing::" || true)
  [[ -z $inner ]] || fail "symbols of inner layers are exported:"$'\n'"$inner"
  others=$(grep -E ' [A-TX-Z] ' "$scratch/symbols" | grep -vE " [A-Z] ${of}commitq::" || true)
  [[ -z $others ]] || fail "symbols of others are exported:"$'\n'"$others"
}

check_kind() {
  local prefix=$scratch/$1
  install_tree "$2" "$prefix"
  [[ $1 != shared ]] || check_shared_library "$prefix"
  [[ $1 != static || $(find "$prefix" -name libcommitq.a) ]] || fail "libcommitq.a is not installed"
  consume_by_find_package "$prefix"
  consume_by_pkg_config "$prefix"
}

rm -rf "$scratch"
mkdir "$scratch"
trap 'rm -rf "$scratch"' EXIT

check_kind "$kind" "$build"

if [[ $kind == static ]]; then other=shared shared=ON; else other=static shared=OFF; fi
CMAKE_BUILD_TYPE=Debug cmake --fresh -S "$here/add_subdirectory" -B "$subproject" \
  -DCMAKE_UNITY_BUILD=ON -DBUILD_SHARED_LIBS=$shared -DCOMMITQ_INSTALL=ON -DCOMMITQ_PROGRAMS=ON >/dev/null
cmake --build "$subproject" >"$scratch/log" || { cat "$scratch/log" >&2 && fail "the subproject does not build"; }
run_consumer "$subproject/consumer"
check_kind "$other" "$subproject"
