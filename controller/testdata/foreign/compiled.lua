-- SPDX-License-Identifier: Apache-2.0
-- Traces, errors that unwind through C, coroutines, callbacks that C makes into compiled code.
local ffi = require("ffi")
ffi.cdef [[
void qsort(void *, size_t, size_t, int (*)(const void *, const void *));
void *malloc(size_t); void free(void *); size_t strlen(const char *);
]]
local compare = ffi.cast("int (*)(const void *, const void *)", function(a, b)
    return ffi.cast("const int *", a)[0] - ffi.cast("const int *", b)[0]
end)
local sum = 0
for turn = 1, 200 do
    for i = 1, 200000 do
        local p = ffi.C.malloc(i % 500 + 1)
        ffi.C.free(p)
        sum = sum + i % 7
    end
    local numbers = ffi.new("int[?]", 2000)
    for i = 0, 1999 do numbers[i] = (i * 7919 + turn) % 2003 end
    ffi.C.qsort(numbers, 2000, 4, compare)
    sum = sum + numbers[1000]
    for i = 1, 2000 do
        local ok, what = pcall(string.rep, i % 3 == 0 and {} or "ab", 3)
        sum = sum + (ok and ffi.C.strlen(what) or 1)
    end
    local count = coroutine.wrap(function() for i = 1, 5000 do coroutine.yield(i) end end)
    for i = 1, 5000 do sum = sum + count() end
    local kept = {}
    for i = 1, 20000 do kept[i % 1000] = { tostring(i) } end
end
io.write(string.format("%d\n", sum))
os.exit(8)
