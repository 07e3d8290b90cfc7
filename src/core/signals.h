// Keeping the host's signals out of where they would do harm.
#pragma once

#include <pthread.h>

#include <csignal>
#include <initializer_list>

namespace commitq::core {

enum class Signals {
    all,      ///< But for those of a fault of the thread itself, which a crash reporter wants to see.
    passing,  ///< Nor those that a person or a supervisor ends a process with: left are timers, children, I/O and the like.
};

/// Blocks signals on this thread for a scope; a thread started in it inherits that. They go to the host's other threads, or
/// wait for the end of the scope.
class SignalsBlocked {
public:
    explicit SignalsBlocked(Signals which) noexcept {
        sigset_t blocked;
        sigfillset(&blocked);
        for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT}) {
            sigdelset(&blocked, fault);
        }
        if (which == Signals::passing) {
            for (const int ending : {SIGINT, SIGTERM, SIGQUIT, SIGHUP}) {
                sigdelset(&blocked, ending);
            }
        }
        pthread_sigmask(SIG_BLOCK, &blocked, &before_);
    }
    SignalsBlocked(const SignalsBlocked&) = delete;
    SignalsBlocked& operator=(const SignalsBlocked&) = delete;
    ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

private:
    sigset_t before_{};
};

}  // namespace commitq::core
