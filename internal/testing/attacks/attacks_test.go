// SPDX-License-Identifier: Apache-2.0

// Package attacks checks that the attacks and quotas of docs/security.md have their tests.
package attacks

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// named is a test in the table: its package and itself.
var named = regexp.MustCompile("`([a-z0-9/]+)` ((?:Test|Fuzz)[A-Za-z0-9]+)")

func TestAttacksHaveTheirTests(t *testing.T) { checkTable(t, "Attacks", 30) }

func TestQuotasHaveTheirTests(t *testing.T) { checkTable(t, "Quotas", 15) }

// checkTable fails if a row of a section's table has no test, or one that is not there.
func checkTable(t *testing.T, section string, least int) {
	t.Helper()
	const root = "../../.."
	page, err := os.ReadFile(filepath.Join(root, "docs/security.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, table, found := strings.Cut(string(page), "\n## "+section+"\n")
	if !found {
		t.Fatalf("there is no table of %s", section)
	}
	table, _, _ = strings.Cut(table, "\n## ")
	rows := 0
	for line := range strings.Lines(table) {
		if !strings.HasPrefix(line, "|") || strings.HasPrefix(line, "| Attack |") || strings.HasPrefix(line, "| What |") || strings.HasPrefix(line, "|--") {
			continue
		}
		rows++
		tests := named.FindAllStringSubmatch(line, -1)
		if len(tests) == 0 {
			t.Errorf("no test: %s", line)
		}
		for _, test := range tests {
			if !has(t, filepath.Join(root, test[1]), test[2]) {
				t.Errorf("%s has no %s", test[1], test[2])
			}
		}
	}
	if rows < least {
		t.Errorf("%d %s", rows, section)
	}
}

// has says whether a package has a test.
func has(t *testing.T, dir, test string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "\nfunc "+test+"(") {
			return true
		}
	}
	return false
}
