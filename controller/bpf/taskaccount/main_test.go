// SPDX-License-Identifier: Apache-2.0

package taskaccount

import (
	"testing"

	"github.com/attune-hpc/attune/internal/testing/leaktest"
)

// TestMain fails if a test leaves a goroutine, a child or a descriptor behind.
func TestMain(m *testing.M) { leaktest.Main(m) }
