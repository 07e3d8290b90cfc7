#include <mysql/error_map.h>
#include <mysql/link.h>

namespace commitq::mysql {

Session& Link::session() {
    {
        const core::MutexLock lock{mutex_};
        if (session_ && !closed_) {
            return *session_;
        }
        if (closed_) {
            throw Error{{.code = Errc::connection_lost,
                         .operation = "connect",
                         .message = "shutting down",
                         .repeat = Repeat::never,
                         .transaction = TransactionState::none}};
        }
    }
    auto fresh = std::make_shared<Session>(options_, Purpose::library);
    came_back_ = had_session_;
    had_session_ = true;
    const core::MutexLock lock{mutex_};
    session_ = std::move(fresh);
    return *session_;
}

void Link::recover(const Error& error) noexcept {
    std::shared_ptr<Session> session;
    {
        const core::MutexLock lock{mutex_};
        session = session_;
    }
    if (!session) {
        return;
    }
    bool usable = !needs_reconnect(error) && session->usable();
    if (usable) {
        try {
            session->rollback("recover");
        } catch (...) {
            usable = false;
        }
    }
    if (!usable) {
        const core::MutexLock lock{mutex_};
        session_.reset();
    }
}

void Link::interrupt() noexcept {
    const core::MutexLock lock{mutex_};
    closed_ = true;
    if (session_) {
        session_->interrupt();
    }
}

}  // namespace commitq::mysql
