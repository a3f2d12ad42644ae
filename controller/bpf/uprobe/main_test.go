// SPDX-License-Identifier: Apache-2.0

package uprobe

import (
	"path/filepath"
	"testing"

	"github.com/attune-hpc/attune/internal/testing/leaktest"
	"github.com/attune-hpc/attune/internal/testing/targets"
)

// TestMain fails if a test leaves a goroutine, a child or a descriptor behind.
func TestMain(m *testing.M) { leaktest.Main(m) }

// mustCompile builds a C program from testdata.
func mustCompile(t testing.TB, source string, flags ...string) string {
	t.Helper()
	return targets.Build(t, filepath.Join("testdata", source), append([]string{"-O2"}, flags...)...)
}
