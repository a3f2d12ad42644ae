// SPDX-License-Identifier: Apache-2.0

//go:build privileged

package controller

import (
	"testing"
)

func TestBudgetOfUprobe(t *testing.T) {
	mechanism, _ := uprobeOfThisKernel(t)
	testBudget(t, mechanism, "-50000", []string{"-static"}, func(c *Config) { c.UseBPF = true })
}
