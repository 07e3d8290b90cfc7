// What all loops do about errors: report, recover the connection, wait, go on.
#pragma once

#include <core/backoff.h>
#include <core/random.h>
#include <mysql/error_map.h>
#include <worker/engine.h>

#include <chrono>
#include <exception>
#include <string_view>

namespace commitq::worker {

/// Runs steps of one loop. Threading: the loop's thread.
class Steps {
public:
    Steps(Engine& engine, mysql::Link& link, core::Pulse& pulse, std::string_view loop,
          std::chrono::microseconds longest_wait)
        : engine_{engine},
          link_{link},
          pulse_{pulse},
          loop_{loop},
          backoff_{std::chrono::milliseconds{20}, longest_wait} {}

    /// Runs @p step. @returns nothing when it worked, else how long to wait before the next try.
    template <class Step>
    std::optional<std::chrono::microseconds> try_once(Step&& step) noexcept {
        pulse_.waits_for("the server");
        try {
            step();
            pulse_.succeeded();
            backoff_.reset();
            return std::nullopt;
        } catch (const Error& error) {
            failed(error, mysql::is_refusal(error) || error.code() == Errc::too_large);
        } catch (const std::exception& error) {  // out of memory, most likely
            unexpected(error.what());
        } catch (...) {
            unexpected("unknown exception");
        }
        return backoff_.next(random_.uniform());
    }

    /// The code of the last error.
    [[nodiscard]] Errc last() const noexcept { return last_; }
    /// Whether the last error will come again for the same step: something in it is to blame.
    [[nodiscard]] bool refused() const noexcept { return refused_; }
    core::Random& random() noexcept { return random_; }

private:
    void unexpected(const char* what) noexcept {
        const Error error{{.code = Errc::server,
                           .operation = std::string{loop_},
                           .message = what,
                           .repeat = Repeat::reconnect,
                           .transaction = TransactionState::lost}};
        failed(error, true);
    }

    void failed(const Error& error, bool refused) noexcept {
        pulse_.failed(!mysql::needs_reconnect(error));
        pulse_.waits_for("its next try");
        last_ = error.code();
        refused_ = refused;
        engine_.report(loop_, error);
        link_.recover(error);
    }

    Engine& engine_;
    mysql::Link& link_;
    core::Pulse& pulse_;
    std::string_view loop_;
    core::Backoff backoff_;
    core::Random random_{};
    Errc last_ = Errc::server;
    bool refused_ = false;
};

}  // namespace commitq::worker
