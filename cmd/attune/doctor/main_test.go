// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"testing"

	"github.com/attune-hpc/attune/cmd/attune/internal/procs"
	"github.com/attune-hpc/attune/internal/readers"
)

// TestMain serves as the helper of these tests.
func TestMain(m *testing.M) {
	readers.ServeIfAsked(procs.Operations()...)
	m.Run()
}
