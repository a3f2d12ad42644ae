// SPDX-License-Identifier: Apache-2.0

package procs

import (
	"testing"

	"github.com/attune-hpc/attune/internal/readers"
)

// TestMain serves as the helper of these tests.
func TestMain(m *testing.M) {
	readers.ServeIfAsked(Operations()...)
	m.Run()
}
