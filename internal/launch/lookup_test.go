// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"errors"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/attune-hpc/attune/internal/testing/files"
)

// What the kernel does not execute goes to the shell, as with execvp(3), unless
// it is a binary: there the shell's message would only confuse.
func TestExecFormat(t *testing.T) {
	tests := []struct {
		name, content string
		shell         bool
	}{
		{"script without #!", "echo hello\n", true},
		{"empty", "", true},
		{"binary of another machine", "\x7fELF\x01\x01\x01", false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "program")
			files.Write(t, path, test.content, 0o700)
			var ran []string
			err := search([]string{path}, nil, func(file string, _ []string) error {
				ran = append(ran, file)
				if file == path {
					return syscall.ENOEXEC
				}
				return nil
			})
			if shell := len(ran) == 2 && ran[1] == shell; shell != test.shell {
				t.Errorf("ran %q", ran)
			}
			if refused := errors.Is(err, syscall.ENOEXEC); refused == test.shell {
				t.Errorf("error %v", err)
			}
		})
	}
}
