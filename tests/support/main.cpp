// In place of GoogleTest's own: the executable also serves as the child processes of its tests.
#include "support/child.h"

#include <gmock/gmock.h>

int main(int argc, char** argv) {
    if (const auto code = commitq::test::run_as_child(argc, argv)) {
        return *code;
    }
    testing::InitGoogleMock(&argc, argv);
    return RUN_ALL_TESTS();
}
