// SPDX-License-Identifier: Apache-2.0

package proc

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestNobodyElseOpensMemory: the memory of a process is opened here only, or by its
// number it could be another program's. The linter forbids process_vm_readv(2) and its
// like.
func TestNobodyElseOpensMemory(t *testing.T) {
	const root = "../.."
	memory := regexp.MustCompile(`"/proc/[^"]*/mem"|"/proc/%d/" ?\+ ?"mem"|procid\.Path\([^)]*, "mem"\)`)
	own := []string{"internal/proc/", "controller/capability/"} // which tries it on itself
	found := 0
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		name := strings.TrimPrefix(path, root+"/")
		if err != nil || entry.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil || !memory.Match(content) {
			return err
		}
		found++
		for _, prefix := range own {
			if strings.HasPrefix(name, prefix) {
				return nil
			}
		}
		t.Errorf("%s opens the memory of a process: use a proc.Handle", name)
		return nil
	})
	if err != nil || found == 0 {
		t.Errorf("%d files, %v", found, err)
	}
}
