#include <commitq/connect_options.h>

#include "thrown.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>

namespace commitq {
namespace {

using namespace std::chrono_literals;

void expect_same(const ConnectOptions& a, const ConnectOptions& b) {
    EXPECT_EQ(a.host, b.host);
    EXPECT_EQ(a.port, b.port);
    EXPECT_EQ(a.socket, b.socket);
    EXPECT_EQ(a.user, b.user);
    EXPECT_EQ(a.password, b.password);
    EXPECT_EQ(a.database, b.database);
    EXPECT_EQ(a.tls, b.tls);
    EXPECT_EQ(a.tls_ca, b.tls_ca);
    EXPECT_EQ(a.charset, b.charset);
    EXPECT_EQ(a.connect_timeout, b.connect_timeout);
    EXPECT_EQ(a.read_timeout, b.read_timeout);
    EXPECT_EQ(a.write_timeout, b.write_timeout);
}

TEST(ConnectUrl, ReadsAllParts) {
    expect_same(ConnectOptions::from_url("mysql://app:secret@db.example:3307/shop?tls=verify-identity&ca=/etc/ca.pem"
                                         "&charset=latin1&connect_timeout=2s&read_timeout=1min&write_timeout=1500ms"),
                {.host = "db.example",
                 .port = 3307,
                 .user = "app",
                 .password = "secret",
                 .database = "shop",
                 .tls = TlsMode::verify_identity,
                 .tls_ca = "/etc/ca.pem",
                 .charset = "latin1",
                 .connect_timeout = 2s,
                 .read_timeout = 1min,
                 .write_timeout = 1500ms});
}

TEST(ConnectUrl, LeavesWhatIsMissingAtItsDefault) {
    expect_same(ConnectOptions::from_url("mysql://"), {});
    expect_same(ConnectOptions::from_url("mysql:///"), {});
    expect_same(ConnectOptions::from_url("mysql:///shop"), {.database = "shop"});
    expect_same(ConnectOptions::from_url("mysql://db"), {.host = "db"});
    expect_same(ConnectOptions::from_url("mysql://db/"), {.host = "db"});
    expect_same(ConnectOptions::from_url("mysql://db?"), {.host = "db"});
    expect_same(ConnectOptions::from_url("mysql://db?tls=off"), {.host = "db", .tls = TlsMode::off});
    expect_same(ConnectOptions::from_url("mysql://db:1/"), {.host = "db", .port = 1});
    expect_same(ConnectOptions::from_url("mysql://:3307/"), {.port = 3307});
    expect_same(ConnectOptions::from_url("mysql://app@db"), {.host = "db", .user = "app"});
    expect_same(ConnectOptions::from_url("mysql://app:@db"), {.host = "db", .user = "app"});
    expect_same(ConnectOptions::from_url("mysql://:secret@db"), {.host = "db", .password = "secret"});
    expect_same(ConnectOptions::from_url("mysql://app@/shop?socket=/run/mysqld/mysqld.sock"),
                {.socket = "/run/mysqld/mysqld.sock", .user = "app", .database = "shop"});
}

TEST(ConnectUrl, DecodesPercent) {
    expect_same(
        ConnectOptions::from_url("mysql://a%40b:p%3a%2F%40%3F%23%25%26%3D%20%c3%A9@db/a%2Fb%3F?socket=%2Ftmp%2Fa%26b"),
        {.host = "db", .socket = "/tmp/a&b", .user = "a@b", .password = "p:/@?#%&= \xc3\xa9", .database = "a/b?"});
    EXPECT_EQ(ConnectOptions::from_url("mysql://a+b:c+d@db").password, "c+d");
    EXPECT_EQ(ConnectOptions::from_url("mysql://a:%2540@db").password, "%40");  // once, not twice
}

TEST(ConnectUrl, ReadsPasswordsAsPeopleTypeThemWhereThatIsUnambiguous) {
    EXPECT_EQ(ConnectOptions::from_url("mysql://app:a:b@db").password, "a:b");
    EXPECT_EQ(ConnectOptions::from_url("mysql://app:a@b@db").password, "a@b");
    EXPECT_EQ(ConnectOptions::from_url("mysql://app:\xc3\xa9@db").password, "\xc3\xa9");
    EXPECT_EQ(ConnectOptions::from_url("mysql://app:[]!$&'()*,;=@db").password, "[]!$&'()*,;=");
}

TEST(ConnectUrl, TakesIpv6InBrackets) {
    expect_same(ConnectOptions::from_url("mysql://[::1]"), {.host = "::1"});
    expect_same(ConnectOptions::from_url("mysql://app:p@[2001:db8::7]:3307/shop"),
                {.host = "2001:db8::7", .port = 3307, .user = "app", .password = "p", .database = "shop"});
    expect_same(ConnectOptions::from_url("mysql://[::ffff:10.0.0.1]/"), {.host = "::ffff:10.0.0.1"});
    expect_same(ConnectOptions::from_url("mysql://[fe80::1%25eth0]/"), {.host = "fe80::1%eth0"});
    for (const std::string_view url : {"mysql://::1", "mysql://::1/shop", "mysql://2001:db8::7:3306/", "mysql://[::1",
                                       "mysql://[::1]3306", "mysql://[::1]x:3306", "mysql://[]", "mysql://[db]",
                                       "mysql://[1.2.3.4]", "mysql://[::g]", "mysql://[::1]:", "mysql://[[::1]]"}) {
        SCOPED_TRACE(url);
        expect_invalid([&] { (void)ConnectOptions::from_url(url); }, "from_url");
    }
}

// Found by the fuzzer: such a host could be described, and the description not be read.
TEST(ConnectUrl, AHostWithAColonIsAnIpv6Address) {
    expect_invalid([] { (void)ConnectOptions::from_url("mysql://db%3A3306/shop"); }, "connect");
    expect_invalid([] { ConnectOptions{.host = "db:3306"}.validate(); }, "connect");
    ConnectOptions{.host = "fe80::1%eth0"}.validate();
}

TEST(ConnectUrl, RefusesAllElse) {
    struct Case {
        std::string_view url;
        std::string named;
    };
    const Case cases[] = {
        {"", "mysql://"},
        {"db", "mysql://"},
        {"mysql:", "mysql://"},
        {"mysql:/db", "mysql://"},
        {"http://db", "mysql://"},
        {"MYSQL://db", "mysql://"},
        {" mysql://db", "mysql://"},
        {"mysql://db:0", "port"},
        {"mysql://db:", "port"},
        {"mysql://db:65536", "port"},
        {"mysql://db:99999999999999999999", "port"},
        {"mysql://db:-1", "port"},
        {"mysql://db:+1", "port"},
        {"mysql://db:0x50", "port"},
        {"mysql://db:33a", "port"},
        {"mysql://db/a/b", "path"},
        {"mysql://db//", "path"},
        {"mysql://db/shop#x", "percent-encoded"},
        {"mysql://db/sh op", "blanks"},
        {"mysql://db/shop\n", "blanks"},
        {"mysql://db/shop\t", "blanks"},
        {"mysql://d\x7f/shop", "blanks"},
        {"mysql://db/%", "database"},
        {"mysql://db/%4", "database"},
        {"mysql://db/%4g", "database"},
        {"mysql://db/%-1", "database"},
        {"mysql://a%zz@db", "user"},
        {"mysql://a:%zz@db", "password"},
        {"mysql://%zz", "host"},
        {"mysql://a%20b/", "host"},
        {"mysql://db?socket", "no value"},
        {"mysql://db?socket=", "no value"},
        {"mysql://db?&tls=off", "no value"},
        {"mysql://db?=x", "unknown parameter"},
        {"mysql://db?ssl=true", "unknown parameter"},
        {"mysql://db?TLS=off", "unknown parameter"},
        {"mysql://db?tls=off&tls=required", "twice"},
        {"mysql://db?tls=Off", "tls"},
        {"mysql://db?tls=verify_ca&ca=/x", "tls"},
        {"mysql://db?tls=verify-ca", "tls_ca"},
        {"mysql://db?ca=/x", "tls_ca"},
        {"mysql://db?charset=utf8%20mb4", "charset"},
        {"mysql://db?charset=utf8';", "charset"},
        {"mysql://db?connect_timeout=5", "connect_timeout"},
        {"mysql://db?read_timeout=-5s", "read_timeout"},
        {"mysql://db?read_timeout=500ms", "read_timeout"},
        {"mysql://db?write_timeout=2h", "write_timeout"},
        {"mysql://db?write_timeout=99999999999999999999d", "write_timeout"},
    };
    for (const auto& [url, named] : cases) {
        SCOPED_TRACE(url);
        const auto error = thrown([&, text = url] { (void)ConnectOptions::from_url(text); });
        if (!error) continue;
        EXPECT_EQ(error->code(), Errc::invalid_argument);
        EXPECT_NE(std::string{error->what()}.find(named), std::string::npos) << error->what();
    }
}

TEST(ConnectUrl, RefusesZeroBytesEverywhere) {
    for (const std::string_view url :
         {"mysql://a%00b@db", "mysql://a:b%00c@db", "mysql://db%00/", "mysql://db/shop%00", "mysql://db?socket=/a%00b",
          "mysql://db?ca=%00", "mysql://db?charset=utf8%00", "mysql://[::1%00]"}) {
        SCOPED_TRACE(url);
        expect_invalid([&] { (void)ConnectOptions::from_url(url); }, "from_url", "zero byte");
    }
    expect_invalid([] { (void)ConnectOptions::from_url(std::string_view{"mysql://a:b\0c@db", 16}); }, "from_url");
}

// Each holds the password and a mistake, most of them one that makes the password look like another part.
TEST(ConnectUrl, NeverSaysThePassword) {
    const std::string secret = "hunter";
    for (const std::string_view url : {"mysql://app:hunter/2@db/shop",
                                       "mysql://app:12/hunter@db/shop",
                                       "mysql://app:hunter?2@db/shop",
                                       "mysql://app:12?hunter@db/shop",
                                       "mysql://app:12?hunter=1@db",
                                       "mysql://app:hunter#2@db/shop",
                                       "mysql://app:12#hunter@db/shop",
                                       "mysql://app:hunter",
                                       "mysql://app:hunter/shop",
                                       "mysql://app:hunter?tls=off",
                                       "mysql://app:hunter%zz@db",
                                       "mysql://app:hunter%00@db",
                                       "mysql://app:hunter 2@db",
                                       "mysql://app:hunter@db:x",
                                       "mysql://app:hunter@db:99999",
                                       "mysql://app:hunter@[::1",
                                       "mysql://app:hunter@db/a/b",
                                       "mysql://app:hunter@db?tls=hunter",
                                       "mysql://app:hunter@db?hunter=1",
                                       "mysql://app:1?hunter",
                                       "mysql://app:1?tls=hunter",
                                       "mysql://app:1?read_timeout=hunter",
                                       "mysql://app:1?charset=%68hunter!",
                                       "mysql://app:1/hunter/2",
                                       "mysql://[hunter]",
                                       "mysql://app@db:hunter@db2:x",
                                       "app:hunter@db",
                                       "mysql://app:hunter@db?read_timeout=1ms",
                                       "mysql://app:hunter@d%20b"}) {
        SCOPED_TRACE(url);
        const auto error = thrown([&] { (void)ConnectOptions::from_url(url); });
        if (!error) continue;
        EXPECT_EQ(std::string{error->what()}.find(secret), std::string::npos) << error->what();
        EXPECT_EQ(error->parts().message.find(secret), std::string::npos);
    }
}

TEST(ConnectOptions, DescribeThemselvesWithoutThePassword) {
    ConnectOptions options{.host = "db", .port = 3307, .user = "app", .database = "shop"};
    EXPECT_EQ(options.describe(), "mysql://app@db:3307/shop");
    for (const std::string password : {"hunter2", "a@b:c/d?e#f%", "***", "\xff\n'\"", " "}) {
        options.password = password;
        EXPECT_EQ(options.describe(), "mysql://app:***@db:3307/shop");
    }
    EXPECT_EQ(ConnectOptions{}.describe(), "mysql://127.0.0.1:3306/");
    EXPECT_EQ((ConnectOptions{.host = "::1", .password = "x"}).describe(), "mysql://:***@[::1]:3306/");
    EXPECT_EQ((ConnectOptions{.socket = "/run/my sql.sock", .user = "a@b"}).describe(),
              "mysql://a%40b@/?socket=/run/my%20sql.sock");
    EXPECT_EQ((ConnectOptions{.tls = TlsMode::verify_ca,
                              .tls_ca = "/etc/ca.pem",
                              .charset = "latin1",
                              .connect_timeout = 2s,
                              .read_timeout = 1500ms,
                              .write_timeout = 2min})
                  .describe(),
              "mysql://127.0.0.1:3306/?tls=verify-ca&ca=/etc/ca.pem&charset=latin1&connect_timeout=2s"
              "&read_timeout=1500ms&write_timeout=120s");
}

TEST(ConnectOptions, DescribeThemselvesOnOneLineWhateverTheyHold) {
    const std::string all = [] {
        std::string bytes;
        for (int byte = 0; byte < 256; ++byte) bytes += static_cast<char>(byte);
        return bytes;
    }();
    const std::string text =
        ConnectOptions{.host = all, .user = all, .database = all, .tls = TlsMode{99}, .charset = all}.describe();
    for (const char c : text) EXPECT_TRUE(c > 0x20 && c < 0x7f);
}

TEST(ConnectOptions, ReadBackFromTheirDescription) {
    for (const ConnectOptions& options :
         {ConnectOptions{}, ConnectOptions{.host = "fe80::1%eth0", .port = 1, .user = "a:b@c/d?e#f%g h"},
          ConnectOptions{.socket = "/tmp/a b&c=d", .database = "d/e?f#g"},
          ConnectOptions{.tls = TlsMode::verify_identity, .tls_ca = "/c a.pem"},
          ConnectOptions{.tls = TlsMode::required, .read_timeout = 1h},
          ConnectOptions{.charset = "latin1", .connect_timeout = 1001ms}})
        expect_same(ConnectOptions::from_url(options.describe()), options);
}

TEST(ConnectOptions, AreCheckedForRanges) {
    using O = ConnectOptions;
    struct Case {
        std::string named;
        std::function<void(O&)> change;
    };
    const Case good[] = {
        {"defaults", [](O&) {}},
        {"password", [](O& o) { o.password = "\xff\n"; }},
        {"socket", [](O& o) { o.socket = "/s", o.host = "", o.port = 0; }},
        {"timeouts", [](O& o) { o.connect_timeout = 1s, o.read_timeout = 1h; }},
        {"tls", [](O& o) { o.tls = TlsMode::verify_ca, o.tls_ca = "/ca.pem"; }},
        {"tls", [](O& o) { o.tls = TlsMode::off, o.tls_ca = "/ca.pem"; }},
    };
    for (const auto& [named, change] : good) {
        SCOPED_TRACE(named);
        O options;
        change(options);
        EXPECT_NO_THROW(options.validate());
    }
    const std::string zero("a\0b", 3);
    const Case bad[] = {
        {"host", [](O& o) { o.host = ""; }},
        {"host", [](O& o) { o.host = "a b"; }},
        {"host", [](O& o) { o.host = "d\xc3\xa9"; }},
        {"host", [&](O& o) { o.host = zero; }},
        {"port", [](O& o) { o.port = 0; }},
        {"socket", [&](O& o) { o.socket = zero; }},
        {"user", [&](O& o) { o.user = zero; }},
        {"password", [&](O& o) { o.password = zero; }},
        {"database", [&](O& o) { o.database = zero; }},
        {"tls_ca", [&](O& o) { o.tls_ca = zero; }},
        {"tls_ca", [](O& o) { o.tls = TlsMode::verify_ca; }},
        {"tls_ca", [](O& o) { o.tls = TlsMode::verify_identity; }},
        {"tls_ca", [](O& o) { o.tls_ca = "/ca.pem"; }},  // and would not be looked at
        {"tls_ca", [](O& o) { o.tls = TlsMode::required, o.tls_ca = "/ca.pem"; }},
        {"charset", [](O& o) { o.charset = ""; }},
        {"charset", [](O& o) { o.charset = "utf8mb4'"; }},
        {"charset", [&](O& o) { o.charset = zero; }},
        {"connect_timeout", [](O& o) { o.connect_timeout = 999ms; }},
        {"connect_timeout", [](O& o) { o.connect_timeout = 0ms; }},
        {"read_timeout", [](O& o) { o.read_timeout = 1h + 1ms; }},
        {"read_timeout", [](O& o) { o.read_timeout = std::chrono::milliseconds::max(); }},
        {"write_timeout", [](O& o) { o.write_timeout = -1s; }},
        {"write_timeout", [](O& o) { o.write_timeout = std::chrono::milliseconds::min(); }},
    };
    for (const auto& [named, change] : bad) {
        SCOPED_TRACE(named);
        O options;
        change(options);
        expect_invalid([&] { options.validate(); }, "connect", named);
    }
}

}  // namespace
}  // namespace commitq
