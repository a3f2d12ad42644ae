// SPDX-License-Identifier: Apache-2.0
//
// Ordinary C++ with templates of the standard library, which takes a compiler some
// seconds.
#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <numeric>
#include <regex>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

template <int N> struct Item {
    std::array<int, N + 1> values;
    std::string name;
    bool operator<(const Item &other) const { return values < other.values; }
};

template <int N> std::size_t work(const std::string &text) {
    std::map<Item<N>, std::vector<std::string>> groups;
    std::unordered_map<std::string, Item<N>> items;
    std::variant<int, std::string, Item<N>> one = text;
    std::regex words("([a-z]+)[0-9]{" + std::to_string(N) + "}");
    for (std::sregex_iterator i(text.begin(), text.end(), words), end; i != end; ++i) {
        Item<N> item{{}, i->str()};
        std::iota(item.values.begin(), item.values.end(), N);
        items[item.name] = item;
        groups[item].push_back(item.name);
        one = item;
    }
    std::vector<Item<N>> all;
    for (auto &[name, item] : items)
        all.push_back(item);
    std::sort(all.begin(), all.end());
    std::stable_sort(all.begin(), all.end(), [](auto &a, auto &b) { return a.name < b.name; });
    std::function<std::size_t()> count = [&] { return all.size() + groups.size() + one.index(); };
    return count();
}

template <int... N> std::size_t every(const std::string &text, std::integer_sequence<int, N...>) {
    return (work<N>(text) + ...);
}

std::size_t total(const std::string &text) { return every(text, std::make_integer_sequence<int, 7>{}); }
