// SPDX-License-Identifier: Apache-2.0

//go:build privileged

package controller

import "testing"

func TestLeavingUprobe(t *testing.T) {
	for name, ends := range leave {
		t.Run(name, func(t *testing.T) {
			testLeaving(t, "uprobe_multi", ends, []string{"-static"}, func(c *Config) { c.UseBPF = true })
		})
	}
}
