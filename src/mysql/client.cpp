#include <commitq/error.h>
#include <mysql/client.h>

#include <mutex>

namespace commitq {

ClientLibrary client_library() noexcept { return ClientTraits<MYSQL>::library; }

namespace mysql {
namespace {

void initialise_library() {
    static std::once_flag once;
    std::call_once(once, [] { mysql_library_init(0, nullptr, nullptr); });
}

}  // namespace

ThreadScope::ThreadScope() {
    initialise_library();
    mysql_thread_init();
}

ThreadScope::~ThreadScope() { mysql_thread_end(); }

MYSQL* unwrap(Handle handle) {
    if (handle.library() != client_library()) {
        throw Error{{.code = Errc::wrong_state,
                     .operation = "handle",
                     .message = "this MYSQL* comes from another client library than commitq was built with"}};
    }
    if (handle.client() == nullptr) {
        throw Error{{.code = Errc::invalid_argument, .operation = "handle", .message = "the connection is null"}};
    }
    return static_cast<MYSQL*>(handle.client());
}

}  // namespace mysql
}  // namespace commitq
