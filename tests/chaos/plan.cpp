#include "chaos/plan.h"

#include "chaos/dice.h"

#include <map>
#include <utility>

namespace commitq::chaos {
namespace {

using std::chrono::milliseconds;

/// How a lane is dealt: from a deck, shuffled anew whenever it is used up.
struct Deck {
    std::vector<std::pair<FaultKind, int>> cards;  ///< Of each kind, how many.
    std::pair<int, int> after;                     ///< Milliseconds.
};

const std::vector<Deck> kDecks = {
    {.cards = {{FaultKind::kill_worker, 4}, {FaultKind::restart_worker, 3}, {FaultKind::kill_producer, 1}},
     .after = {700, 2'500}},
    {.cards = {{FaultKind::freeze_worker, 1}}, .after = {500, 3'000}},
    {.cards = {{FaultKind::kill_server, 1}, {FaultKind::read_only, 2}, {FaultKind::kill_connections, 6}},
     .after = {1'000, 3'500}},
    {.cards = {{FaultKind::lock_jobs, 1}}, .after = {500, 3'000}},
};

milliseconds draw_time(Dice& dice, std::pair<int, int> range) {
    return milliseconds{dice.between(range.first, range.second)};
}

/// @returns how long it lasts: shorter than the lease, or longer, as the kind is about.
milliseconds draw_length(Dice& dice, FaultKind kind) {
    static const std::map<FaultKind, std::pair<int, int>> lengths = {
        {FaultKind::restart_worker, {0, 4'000}},
        {FaultKind::freeze_worker, {2'200, 9'000}},
        {FaultKind::read_only, {300, 4'000}},
        {FaultKind::lock_jobs, {500, 4'500}},
    };
    const auto found = lengths.find(kind);
    return found == lengths.end() ? milliseconds{0} : draw_time(dice, found->second);
}

Lane deal(Dice dice, const Deck& deck, milliseconds duration) {
    Lane lane;
    milliseconds at{0};
    while (at < duration) {
        std::vector<FaultKind> cards;
        for (const auto& [kind, count] : deck.cards) {
            cards.insert(cards.end(), static_cast<std::size_t>(count), kind);
        }
        dice.shuffle(cards);
        for (const FaultKind kind : cards) {
            Fault fault{.kind = kind, .after = draw_time(dice, deck.after), .lasts = draw_length(dice, kind)};
            fault.target = dice.between(0, (kind == FaultKind::kill_producer ? kProducers : kWorkers) - 1);
            fault.amount = dice.between(1, 60);
            at += fault.after + fault.lasts;
            lane.push_back(fault);
        }
    }
    return lane;
}

}  // namespace

std::string_view to_string(FaultKind kind) {
    switch (kind) {
        case FaultKind::kill_worker:
            return "kill worker";
        case FaultKind::restart_worker:
            return "restart worker";
        case FaultKind::freeze_worker:
            return "freeze worker";
        case FaultKind::kill_producer:
            return "kill producer";
        case FaultKind::kill_server:
            return "kill server";
        case FaultKind::read_only:
            return "read only";
        case FaultKind::kill_connections:
            return "kill connections";
        case FaultKind::lock_jobs:
            return "lock jobs";
    }
    return "";
}

std::vector<Lane> make_plan(std::uint64_t seed, std::chrono::milliseconds duration) {
    std::vector<Lane> lanes;
    for (const Deck& deck : kDecks) {
        lanes.push_back(deal(Dice{seed, {lanes.size()}}, deck, duration));
    }
    return lanes;
}

}  // namespace commitq::chaos
