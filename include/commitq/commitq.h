/// @file
/// All of commitq but the interop headers. See `queue.h` for the producer, `worker.h` for the consumer, `error.h` for
/// what can go wrong, `schema.h` for the tables.
///
/// Terms. *Thread-safe*: any member from any thread at once. *Thread-compatible*: const members from any thread at
/// once, others alone. *One thread at a time*: any thread, never two.
#pragma once

#include <commitq/connect_options.h>
#include <commitq/error.h>
#include <commitq/handle.h>
#include <commitq/health.h>
#include <commitq/job_context.h>
#include <commitq/observer.h>
#include <commitq/outcome.h>
#include <commitq/queue.h>
#include <commitq/reaper.h>
#include <commitq/retry_policy.h>
#include <commitq/schema.h>
#include <commitq/transaction.h>
#include <commitq/version.h>
#include <commitq/worker.h>

/// Everything of commitq.
namespace commitq {}
