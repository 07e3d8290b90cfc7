#include <commitq/observer.h>

namespace commitq {

Observer::~Observer() = default;

void Observer::on_claimed(const JobEvent& /*event*/) noexcept {}
void Observer::on_started(const JobEvent& /*event*/) noexcept {}
void Observer::on_completed(const JobEvent& /*event*/) noexcept {}
void Observer::on_retried(const JobEvent& /*event*/) noexcept {}
void Observer::on_snoozed(const JobEvent& /*event*/) noexcept {}
void Observer::on_dead(const JobEvent& /*event*/) noexcept {}
void Observer::on_cancelled(const JobEvent& /*event*/) noexcept {}
void Observer::on_released(const JobEvent& /*event*/) noexcept {}
void Observer::on_lease_lost(const JobEvent& /*event*/) noexcept {}
void Observer::on_reaped(std::size_t /*returned*/, std::size_t /*dead*/) noexcept {}
void Observer::on_error(std::string_view /*loop*/, const Error& /*error*/) noexcept {}

}  // namespace commitq
