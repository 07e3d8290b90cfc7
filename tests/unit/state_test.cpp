#include "core/state.h"

#include <gtest/gtest.h>

#include <array>
#include <set>
#include <utility>

namespace commitq::core {
namespace {

using enum State;

constexpr std::array kStates{pending, running, completed, dead, cancelled, blocked};

TEST(State, HasTheNameThatStandsInTheColumn) {
    const std::pair<State, std::string_view> names[] = {{pending, "pending"},     {running, "running"},
                                                        {completed, "completed"}, {dead, "dead"},
                                                        {cancelled, "cancelled"}, {blocked, "blocked"}};
    for (const auto& [state, name] : names) {
        EXPECT_EQ(to_string(state), name);
        EXPECT_EQ(parse_state(name), state);
    }
}

TEST(State, IsNotReadFromAnythingElse) {
    for (const std::string_view name : {"", "Pending", "PENDING", "pending ", "done", "failed", "1", "pendin"})
        EXPECT_EQ(parse_state(name), std::nullopt) << name;
}

TEST(State, ChangesOnlyAsTheTableSays) {
    const std::set<std::pair<State, State>> allowed{
        {pending, running}, {pending, blocked}, {pending, cancelled}, {pending, dead},    {running, completed},
        {running, pending}, {running, dead},    {running, cancelled}, {blocked, pending}, {blocked, cancelled},
        {blocked, dead},    {dead, pending},    {cancelled, pending},
    };
    for (const State from : kStates)
        for (const State to : kStates)
            EXPECT_EQ(can_go(from, to), allowed.contains({from, to})) << to_string(from) << " -> " << to_string(to);
}

TEST(State, CompletedIsTheOnlyEnd) {
    for (const State from : kStates) {
        bool goes_on = false;
        for (const State to : kStates) goes_on = goes_on || can_go(from, to);
        EXPECT_EQ(goes_on, from != completed) << to_string(from);
    }
}

TEST(State, RunsOnlyByAClaim) {
    for (const State from : kStates) EXPECT_EQ(can_go(from, running), from == pending);
    for (const State from : kStates) EXPECT_EQ(can_go(from, completed), from == running);
}

}  // namespace
}  // namespace commitq::core
