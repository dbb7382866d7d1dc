/// Every instruction of conformance.h against what an NVIDIA H200 answered (conformance.txt).
#include "conformance.h"
#include "harness.h"

#include <filesystem>

int main() {
    std::map<std::string, std::uint64_t> recorded;
    std::istringstream lines(check::read_file(
        (std::filesystem::path(__FILE__).parent_path() / "conformance.txt").string()));
    for (std::string line; std::getline(lines, line);)
        recorded[line.substr(17)] = std::stoull(line.substr(0, 16), nullptr, 16);
    CHECK(recorded.size() > 1000);
    std::vector<conformance::Case> cases = conformance::all_cases();
    const std::size_t known = cases.size();
    for (const conformance::Case& c : conformance::unrecorded_cases())
        cases.push_back(c);
    for (std::size_t n = 0; n < cases.size(); ++n) {
        const conformance::Case& c = cases[n];
        const std::string title = conformance::title(c);
        const auto expected = recorded.find(title);
        if (expected == recorded.end() && n >= known) continue;
        if (expected == recorded.end()) {
            check::report(__FILE__, __LINE__, title + ": nothing recorded");
            continue;
        }
        harness::Module module(harness::header() + conformance::kernel(c, 0));
        if (!module.loaded()) continue;
        const auto words = harness::over_columns(module, conformance::inputs(c), true);
        if (conformance::hash(words) != expected->second) {
            check::report(__FILE__, __LINE__, title + ": other bits than the card's");
        }
    }
    return check::failures();
}
