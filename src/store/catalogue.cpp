#include <store/catalogue.h>
#include <store/claim.h>
#include <store/enqueue.h>
#include <store/finish.h>
#include <store/lease.h>
#include <store/reap.h>
#include <store/registry.h>
#include <store/schema.h>

#include <numeric>
#include <utility>

namespace commitq::store {
namespace {

using namespace std::chrono_literals;

/// As many ids as a batch has: the optimizer must keep to the primary key for all of them.
std::vector<JobId> some_ids() {
    std::vector<JobId> ids(100);
    std::iota(ids.begin(), ids.end(), JobId{1});
    return ids;
}

Claimant some_claimant(const core::Token& owner) {
    const std::vector<std::pair<std::string, int>> types{{"t", 20}, {"u", 8}};
    return make_claimant(owner, 30s, types);
}

}  // namespace

std::vector<Statement> catalogue(const Tables& tables) {
    const core::Token owner{1};
    const std::vector<JobId> ids = some_ids();
    const std::vector<std::string> queues{"q", "r"};
    const Claimant claimant = some_claimant(owner);
    const ClaimRange range{.queue = "q",
                           .priority = 5,
                           .from = "2020-01-01 00:00:00.000000",
                           .limit = 100,
                           .byte_budget = 1,
                           .not_these = {}};
    const EnqueueOptions options{};
    const Insert small{.type = "t", .payload = "{}", .options = &options};
    const std::string long_payload(kInlinePayload + 1, 'x');
    const Insert large{.type = "t", .payload = long_payload, .options = &options};
    const std::uint64_t no_payload_id = 0;
    const Finish retry{.id = 1, .attempt = 1, .ending = Ending::retry, .delay = 1s, .error = "e"};
    const WorkerRow worker{.token = owner, .host = "h", .pid = 1, .queues = "q", .lease = 30s};
    return {
        {"insert_payloads", insert_payloads_sql(tables, {&large, 1})},
        {"insert_jobs", insert_jobs_sql(tables, "q", {&small, 1}, {&no_payload_id, 1})},
        {"look", look_sql(tables, queues)},
        {"look_queues", look_queues_sql(tables, queues)},
        {"claim_select", claim_select_sql(tables, claimant, range)},
        {"claim_update", claim_update_sql(tables, claimant, ids)},
        {"better", better_sql(tables, "q", 5)},
        {"read_payloads", read_payloads_sql(tables, ids)},
        {"renew_select", renew_select_sql(tables, owner, ids)},
        {"renew_update", renew_update_sql(tables, owner, ids, 30s)},
        {"still_owned", still_owned_sql(tables, owner, ids)},
        {"complete", complete_sql(tables, owner, ids, 1)},
        {"release", release_sql(tables, owner, ids, 1)},
        {"end", end_sql(tables, owner, retry)},
        {"read_back", read_back_sql(tables, owner, ids)},
        {"lock_held", lock_held_sql(tables, ids)},
        {"take_duty", take_duty_sql(tables, "reap", 5s)},
        {"duty_done", duty_done_sql(tables, "reap")},
        {"find_expired", find_expired_sql(tables, queues, 100)},
        {"lock_expired", lock_expired_sql(tables, ids)},
        {"reap", reap_sql(tables, ids, false)},
        {"upsert_worker", upsert_worker_sql(tables, worker)},
        {"delete_worker", delete_worker_sql(tables, owner)},
        {"forget_workers", forget_workers_sql(tables)},
        {"register_queues", register_queues_sql(tables, queues)},
        {"list_queues", list_queues_sql(tables)},
        {"read_version", read_version_sql(tables)},
        {"record_version", record_version_sql(tables, 1)},
        {"probe", probe_sql(tables)},
    };
}

}  // namespace commitq::store
