// SPDX-License-Identifier: Apache-2.0

//go:build e2e && full

package e2e

import "testing"

func TestRanksOfMPICHAreTuned(t *testing.T) { ranksAreTuned(t, "mpich") }
