// SPDX-License-Identifier: Apache-2.0

//go:build privileged

package accountant

import (
	"testing"

	"github.com/attune-hpc/attune/internal/testing/asuser"
)

// TestDiskInContainer: root of a container has its own directories measured.
func TestDiskInContainer(t *testing.T) { asuser.InContainer(t, "TestDiskOfShort") }
