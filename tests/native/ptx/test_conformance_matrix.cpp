/// Products of matrices against what an NVIDIA H200 answered (conformance_matrix.txt).
#include "conformance_matrix.h"
#include "harness.h"

#include <cmath>
#include <filesystem>

namespace {

using Words = std::vector<std::uint64_t>;

const std::filesystem::path kRecorded =
    std::filesystem::path(__FILE__).parent_path() / "conformance_matrix.txt";

std::map<std::string, Words> recorded() {
    std::map<std::string, Words> result;
    std::istringstream lines(check::read_file(kRecorded.string()));
    std::string name, values;
    while (std::getline(lines, name) && std::getline(lines, values)) {
        std::istringstream words(values);
        words >> std::hex;
        for (std::uint64_t word = 0; words >> word;)
            result[name].push_back(word);
    }
    return result;
}

double half(std::uint64_t bits) {
    const int exponent = static_cast<int>(bits >> 10 & 31);
    const double mantissa = static_cast<double>(bits & 0x3ff);
    double value =
        exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(mantissa + 1024, exponent - 25);
    if (exponent == 31)
        value = mantissa != 0 ? std::nan("") : std::numeric_limits<double>::infinity();
    return (bits & 0x8000) != 0 ? -value : value;
}

/// The sums in one word.
std::vector<double> sums(std::uint64_t word, const std::string& kind) {
    std::vector<double> values;
    if (kind == "f16") {
        for (int at = 0; at < 64; at += 16)
            values.push_back(half(word >> at & 0xffff));
    } else {
        for (int at = 0; at < 64; at += 32)
            values.push_back(
                static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(word >> at))));
    }
    return values;
}

/// Operands without their signs give the sum of the absolute values.
std::vector<Words> absolute(std::vector<Words> columns, const conformance::MatrixCase& c) {
    for (std::size_t n = 0; n < 3; ++n) {
        const std::string& kind = c.kinds[n];
        const std::uint64_t signs = kind[0] == 'e'                    ? 0x8080808080808080
                                    : kind == "f16" || kind == "bf16" ? 0x8000800080008000
                                                                      : 0x8000000080000000;
        for (std::uint64_t& word : columns[n])
            word &= ~signs;
    }
    return columns;
}

void near(const conformance::MatrixCase& c, const Words& mine, const Words& its,
          const Words& scale) {
    double worst = 0;
    for (std::size_t n = 0; n < its.size(); ++n) {
        const auto a = sums(mine[n], c.kinds[2]), b = sums(its[n], c.kinds[2]),
                   s = sums(scale[n], c.kinds[2]);
        for (std::size_t e = 0; e < a.size(); ++e) {
            if (std::isfinite(a[e]) && std::isfinite(b[e])) {
                if (a[e] != b[e] && std::isfinite(s[e]))
                    worst = std::max(worst, std::fabs(a[e] - b[e]) / s[e]);
            } else if (std::isnan(a[e]) != std::isnan(b[e]) ||
                       (!std::isnan(a[e]) && a[e] != b[e])) {
                worst = std::numeric_limits<double>::infinity();
            }
        }
    }
    if (worst > c.tolerance)
        check::report(__FILE__, __LINE__,
                      conformance::title(c) + ": off by " + std::to_string(std::log2(worst)) +
                          " bits of the absolute sum");
}

} // namespace

int main() {
    if (!std::filesystem::exists(kRecorded)) {
        std::printf("no card has been asked yet: record_conformance writes %s\n",
                    kRecorded.c_str());
        return 0;
    }
    const auto card = recorded();
    for (const conformance::MatrixCase& c : conformance::matrix_cases()) {
        const std::string title = conformance::title(c);
        const auto columns = conformance::inputs(c);
        harness::Module module(harness::header() + conformance::kernel(c));
        if (!module.loaded()) continue;
        const Words mine = harness::over_columns(module, columns, false);
        const auto found = card.find(title);
        if (found == card.end() || found->second.size() != mine.size()) {
            check::report(__FILE__, __LINE__, title + ": nothing recorded");
        } else if (c.tolerance == 0) {
            if (mine != found->second)
                check::report(__FILE__, __LINE__, title + ": other bits than the card's");
        } else {
            near(c, mine, found->second,
                 harness::over_columns(module, absolute(columns, c), false));
        }
    }
    return check::failures();
}
