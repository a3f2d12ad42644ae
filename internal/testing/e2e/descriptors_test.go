// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"testing"

	"github.com/attune-hpc/attune/internal/testing/targets"
)

// A program that is held up by a socket as it made it: the socket is changed from
// outside, while the program uses it.
func TestConnectionIsTuned(t *testing.T) {
	tuneUntil(t, kept("nagle", 1), nil, targets.Build(t, workloads+"tcp_requests.c"), lasting)
}
