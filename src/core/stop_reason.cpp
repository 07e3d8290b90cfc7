#include <commitq/job_context.h>

namespace commitq {

std::string_view to_string(StopReason reason) noexcept {
    using enum StopReason;
    switch (reason) {
        case none:
            return "none";
        case lease_lost:
            return "lease_lost";
        case timeout:
            return "timeout";
        case shutdown:
            return "shutdown";
    }
    return "unknown";
}

}  // namespace commitq
