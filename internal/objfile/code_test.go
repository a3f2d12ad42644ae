// SPDX-License-Identifier: Apache-2.0

package objfile

import (
	"os"
	"testing"
)

// The test itself is a Go program, and its code can be read.
func TestCode(t *testing.T) {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	file, err := Open(program)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if !file.IsGo() {
		t.Error("a Go program was not recognised")
	}
	entry := file.headers.file.Entry
	offset, inFile := file.headers.offset(entry, 1)
	symbol := Symbol{Name: "entry", Value: entry, FileOffset: offset, InFile: inFile, Executable: true}
	code, err := file.Code(symbol, 8)
	if err != nil || len(code) != 8 {
		t.Errorf("code % x, %v", code, err)
	}
	symbol.Executable = false
	if _, err := file.Code(symbol, 8); err == nil {
		t.Error("read the code of a variable")
	}
}
