// SPDX-License-Identifier: Apache-2.0

package discover

import (
	"testing"

	"github.com/attune-hpc/attune/internal/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }
