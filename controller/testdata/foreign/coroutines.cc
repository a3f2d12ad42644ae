// SPDX-License-Identifier: Apache-2.0

// Coroutines and exceptions that pass functions of shared libraries: qsort(3), and
// the streams of libstdc++.
#include <coroutine>
#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

struct Numbers {
    struct promise_type {
        int current = 0;
        Numbers get_return_object() { return {std::coroutine_handle<promise_type>::from_promise(*this)}; }
        std::suspend_always initial_suspend() { return {}; }
        std::suspend_always final_suspend() noexcept { return {}; }
        std::suspend_always yield_value(int n) {
            current = n;
            return {};
        }
        void return_void() {}
        void unhandled_exception() { throw; }
    };
    std::coroutine_handle<promise_type> handle;
};

static Numbers numbers(int n) {
    for (int i = 0; i < n; i++)
        co_yield i;
    throw std::runtime_error("no more");
}

static int compare(const void *a, const void *b) {
    int x = *static_cast<const int *>(a), y = *static_cast<const int *>(b);
    if (x == 500 || y == 500)
        throw x + y;
    return x - y;
}

static long work(int seed) {
    long sum = 0;
    for (int round = 0; round < 400; round++) {
        Numbers n = numbers(200);
        try {
            for (;;) {
                n.handle.resume();
                sum += n.handle.promise().current;
            }
        } catch (const std::exception &e) {
            sum += std::string(e.what()).size();
        }
        n.handle.destroy();
        std::vector<int> list;
        for (int i = 0; i < 300; i++)
            list.push_back((i * 7919 + seed) % 1000);
        try {
            qsort(list.data(), list.size(), sizeof(int), compare);
        } catch (int) {
            sum++;
        }
        std::stringstream text("12 x");
        text.exceptions(std::ios::failbit);
        int value = 0;
        try {
            text >> value >> value;
        } catch (const std::ios::failure &) {
            sum += value;
        }
    }
    return sum;
}

int main() {
    for (int round = 0; round < 60; round++) {
        std::vector<long> sums(8);
        std::vector<std::thread> threads;
        for (int i = 0; i < 8; i++)
            threads.emplace_back([&sums, i] { sums[i] = work(i); });
        for (auto &t : threads)
            t.join();
        for (long s : sums)
            printf("%ld ", s);
        puts("");
    }
    return 7;
}
