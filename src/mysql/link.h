// A connection that comes back.
#pragma once

#include <commitq/connect_options.h>
#include <core/mutex.h>
#include <mysql/session.h>

#include <memory>
#include <utility>

namespace commitq::mysql {

/// Holds a session and makes a new one when it broke. Threading: one thread at a time, but `interrupt` from any.
class Link {
public:
    explicit Link(ConnectOptions options) : options_{std::move(options)} {}

    /// The open session, connecting if there is none. Throws Error.
    Session& session();

    /// After an error: ends an open transaction, or drops the session if it can't be used.
    void recover(const Error& error) noexcept;

    /// True when the session was made since the last call, after an earlier one was dropped.
    bool came_back() noexcept { return std::exchange(came_back_, false); }

    /// Breaks a call under way and refuses new connections: for shutdown.
    void interrupt() noexcept;

private:
    ConnectOptions options_;
    core::Mutex mutex_;  ///< Between the user and `interrupt`.
    std::shared_ptr<Session> session_ GUARDED_BY(mutex_);
    bool closed_ GUARDED_BY(mutex_) = false;
    bool had_session_ = false;
    bool came_back_ = false;
};

}  // namespace commitq::mysql
