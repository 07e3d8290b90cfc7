// A worker process: the shop's own program, started again with --worker.
#pragma once

#include "options.h"

namespace shop {

/// Runs until SIGTERM. Returns the process's exit code: 0 when every job it had was finished or given back.
int run_worker(const Options& options);

}  // namespace shop
