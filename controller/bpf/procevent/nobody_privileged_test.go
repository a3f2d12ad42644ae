// SPDX-License-Identifier: Apache-2.0

//go:build privileged

package procevent

import (
	"testing"

	"github.com/attune-hpc/attune/controller/bpf/internal/bpftest"
)

// Root is not needed: the two capabilities that the remedy names are enough.
func TestTwoCapabilitiesAreEnough(t *testing.T) { bpftest.AsNobody(t, "TestProcessTreeOf500") }
