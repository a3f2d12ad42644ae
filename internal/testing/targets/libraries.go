// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"bufio"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// Libraries are real objects of this machine that hold code: the more of them
// the better. A test without any is skipped.
func Libraries(tb testing.TB) (paths []string) {
	tb.Helper()
	seen := make(map[string]bool)
	for _, pattern := range []string{
		"/lib/*/libc.so.6", "/lib/*/libm.so.6", "/lib/*/libz.so.1", "/lib*/*/libcrypto.so.*", "/usr/lib/*/libcrypto.so.*",
		"/usr/lib/*/libstdc++.so.6", "/usr/lib/*/libpython3*.so.*", "/usr/bin/python3", "/usr/lib/*/libgomp.so.1",
		"/usr/lib/*/libsqlite3.so.0", "/usr/lib/*/libmpi.so.*", "/usr/lib/*/libopenblas.so.0",
		"/usr/lib/python3/dist-packages/numpy/core/_multiarray_umath*.so",
	} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			tb.Fatal(err)
		}
		for _, path := range found {
			if file, err := filepath.EvalSymlinks(path); err == nil && !seen[file] {
				seen[file] = true
				paths = append(paths, path)
			}
		}
	}
	if len(paths) == 0 {
		tb.Skip("no library of the list is on this machine")
	}
	return paths
}

var disassembled = regexp.MustCompile(`^ *([0-9a-f]+):\t`)

// Boundaries maps the address of each instruction of an object, as objdump
// finds them, to that of the next.
func Boundaries(tb testing.TB, path string) map[uint64]uint64 {
	tb.Helper()
	text, err := exec.Command("objdump", "-d", "--no-show-raw-insn", path).Output()
	if err != nil {
		tb.Fatal(err)
	}
	next := make(map[uint64]uint64)
	var last uint64
	lines := bufio.NewScanner(strings.NewReader(string(text)))
	for lines.Scan() {
		match := disassembled.FindStringSubmatch(lines.Text())
		if match == nil {
			continue
		}
		at, err := strconv.ParseUint(match[1], 16, 64)
		if err != nil {
			tb.Fatal(err)
		}
		next[last] = at
		last = at
	}
	return next
}
