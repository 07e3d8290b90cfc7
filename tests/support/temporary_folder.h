// A place for a test's files.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>

namespace commitq::test {

/// A new folder, gone with all that is in it at the end.
class TemporaryFolder {
public:
    TemporaryFolder() {
        path_ = (std::filesystem::temp_directory_path() / "commitq-test-XXXXXX").string();
        if (mkdtemp(path_.data()) == nullptr) {
            throw std::runtime_error{"no temporary folder"};
        }
    }
    TemporaryFolder(const TemporaryFolder&) = delete;
    TemporaryFolder& operator=(const TemporaryFolder&) = delete;
    ~TemporaryFolder() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }

    /// The path of a file in it, which need not exist.
    [[nodiscard]] std::string path(std::string_view name) const { return path_ + "/" + std::string{name}; }
    /// Writes a file. @returns its path.
    std::string write(std::string_view name, std::string_view content) const {
        std::ofstream{path(name), std::ios::binary} << content;
        return path(name);
    }

private:
    std::string path_{};
};

}  // namespace commitq::test
