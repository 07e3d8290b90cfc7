#include <core/text.h>
#include <worker/engine.h>

#include <exception>

namespace commitq::worker {
namespace {

Outcome call(Run& run) {
    if (run.job.damaged) {
        return Outcome::dead("the payload is missing from the payloads table");
    }
    JobContext context{run};
    return run.handler->handler(context);
}

}  // namespace

Outcome run_handler(Run& run) noexcept {
    const auto began = core::Clock::now();
    Outcome outcome = [&]() -> Outcome {
        try {
            return call(run);
        } catch (const std::exception& error) {
            return Outcome::retry(error.what());
        } catch (...) {
            return Outcome::retry("the handler threw something that is no std::exception");
        }
    }();
    run.ran = std::chrono::duration_cast<std::chrono::microseconds>(core::Clock::now() - began);
    return outcome;
}

store::Finish make_finish(const Run& run, const Outcome& outcome, core::Random& random) {
    using Kind = Outcome::Kind;
    store::Finish finish{.id = run.job.id, .attempt = run.job.attempt};
    finish.error = core::clean_error_text(outcome.reason());
    switch (outcome.kind()) {
        case Kind::done:
            finish.ending = store::Ending::complete;
            break;
        case Kind::retry:
            finish.ending = run.job.attempt >= run.job.max_attempts ? store::Ending::bury : store::Ending::retry;
            finish.delay = outcome.delay().value_or(run.handler->retry.delay(run.job.attempt, random.uniform()));
            break;
        case Kind::snooze:
            finish.ending = store::Ending::snooze;
            finish.delay = outcome.delay().value_or(std::chrono::microseconds{0});
            break;
        case Kind::dead:
            finish.ending = store::Ending::bury;
            break;
        case Kind::cancel:
            finish.ending = store::Ending::cancel;
            break;
    }
    return finish;
}

void handler_loop(Engine& engine) noexcept {
    const mysql::ThreadScope thread;
    while (auto run = engine.board.take()) {
        engine.tell_started(*run);
        Outcome outcome = run_handler(*run);
        engine.board.finished({.run = std::move(run), .outcome = std::move(outcome)});
    }
}

}  // namespace commitq::worker
