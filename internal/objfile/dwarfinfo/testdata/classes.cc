// SPDX-License-Identifier: Apache-2.0
// Classes that C++ passes by address, and others.
struct Plain {
    int a;
    Plain() = default;
    Plain(int n) : a(n) {}
};
struct Destroyed {
    int a;
    static Destroyed other;
    ~Destroyed() { a = 0; }
};
struct Defaulted {
    int a;
    ~Defaulted() = default;
    Defaulted(const Defaulted &) = default;
    Defaulted(int n) : a(n) {}
};
template <class T> struct Moved {
    T a;
    Moved(T n) : a(n) {}
    Moved(Moved &&other) : a(other.a) {}
};
struct Large {
    long a[3];
    Large(long n) : a{n, n, n} {}
    Large(const Large &other) : a{other.a[0], 1, 2} {}
};
struct Holder {
    const Destroyed held[1];
};
struct Virtual {
    virtual int f() { return 1; }
};
struct Derived : Plain {
    int b;
};

__attribute__((noinline)) int all(Plain plain, Destroyed destroyed, Defaulted defaulted,
                                  Moved<int> moved, Large large, int last) {
    return plain.a + destroyed.a + defaulted.a + moved.a + (int)large.a[0] + last;
}
__attribute__((noinline)) int more(Holder holder, Virtual dynamic, int between, Derived derived,
                                   int lost) {
    return holder.held[0].a + dynamic.f() + between + derived.b + lost;
}
__attribute__((noinline)) Destroyed made(int first) { return {first}; }

int main() {
    Derived d;
    d.b = 1;
    return all(Plain(1), {2}, Defaulted(3), Moved<int>(4), Large(5), 6) == 0 ||
           more({{{1}}}, Virtual(), 2, d, 3) == 0 || made(1).a == 0;
}
