/// @file
/// The version of commitq. This file is its one source: CMake reads it from here.
#pragma once

/// Major version; a change breaks source compatibility.
#define COMMITQ_VERSION_MAJOR 0
/// Minor version; adds features.
#define COMMITQ_VERSION_MINOR 1
/// Patch version; fixes only.
#define COMMITQ_VERSION_PATCH 0
/// The version as text.
#define COMMITQ_VERSION "0.1.0"
