// SPDX-License-Identifier: Apache-2.0

// Package files writes and reads files in tests, which end where that fails.
package files

import (
	"os"
	"testing"
)

// Write writes a file with the permissions mode, or overwrites it.
func Write[T ~string | ~[]byte](tb testing.TB, path string, content T, mode os.FileMode) {
	tb.Helper()
	if err := os.WriteFile(path, []byte(content), mode); err != nil {
		tb.Fatal(err)
	}
}

// Read returns what is in a file.
func Read(tb testing.TB, path string) []byte {
	tb.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		tb.Fatal(err)
	}
	return content
}
