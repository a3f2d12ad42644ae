// SPDX-License-Identifier: Apache-2.0

//go:build privileged

package controller

import (
	"testing"
)

func TestLeavingUprobe(t *testing.T) {
	mechanism, _ := uprobeOfThisKernel(t)
	for name, ends := range leave {
		t.Run(name, func(t *testing.T) {
			testLeaving(t, mechanism, ends, []string{"-static"}, func(c *Config) { c.UseBPF = true })
		})
	}
}
