// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"os"
	"testing"
)

func TestLimits(t *testing.T) {
	for _, tt := range []struct {
		name, membership, controller string
		files                        map[string]string
		want                         Limits
	}{
		{"none", "0::/job\n", "", map[string]string{"job/memory.max": "max\n", "job/cpu.max": "max 100000\n"}, Limits{}},
		{"that above is tighter", "0::/job/step\n", "", map[string]string{
			"job/step/memory.max": "9000\n", "job/memory.max": "500\n", "job/step/cpu.max": "150000 100000\n", "job/cpu.max": "400000 100000\n",
		}, Limits{MemoryBytes: 500, CPUs: 1.5}},
		{"memory of version 1", "4:memory:/job\n0::/\n", "memory", map[string]string{"job/memory.limit_in_bytes": "1000\n"}, Limits{MemoryBytes: 1000}},
		{"no memory limit of version 1", "4:memory:/job\n0::/\n", "memory", map[string]string{"job/memory.limit_in_bytes": "9223372036854771712\n"}, Limits{}},
		{"CPUs of version 1", "4:cpu,cpuacct:/job\n", "cpu", map[string]string{"job/cpu.cfs_quota_us": "50000\n", "job/cpu.cfs_period_us": "100000\n"}, Limits{CPUs: 0.5}},
		{"no quota of version 1", "4:cpu:/job\n", "cpu", map[string]string{"job/cpu.cfs_quota_us": "-1\n", "job/cpu.cfs_period_us": "100000\n"}, Limits{}},
	} {
		if got := limits(tt.membership, mounted(t, tt.controller == "", tt.controller, tt.files)); got != tt.want {
			t.Errorf("%s: %+v, want %+v", tt.name, got, tt.want)
		}
	}
	if _, err := LimitsOf(os.Getpid()); err != nil {
		t.Error(err)
	}
}
