/// @file
/// Symbol visibility. The library is built with hidden visibility; what this macro marks is its ABI.
#pragma once

#if defined(__GNUC__)
/// Marks a class or function as part of the library's ABI.
#define COMMITQ_EXPORT __attribute__((visibility("default")))
#else
#define COMMITQ_EXPORT
#endif
