// SPDX-License-Identifier: Apache-2.0

package cgroup

import "testing"

func TestCPUs(t *testing.T) {
	const v1, v2 = "4:cpuset:/job/step\n0::/\n", "0::/job/step\n"
	for _, tt := range []struct {
		name, membership string
		files            map[string]string
		want             string
	}{
		{"its own", v2, map[string]string{"job/step/cpuset.cpus.effective": "2-3\n", "job/cpuset.cpus.effective": "0-3\n"}, "2-3"},
		{"that above", v2, map[string]string{"job/step/cpu.max": "max\n", "job/cpuset.cpus.effective": "0,4\n"}, "0,4"},
		{"none", v2, nil, ""},
		{"version 1", v1, map[string]string{"job/step/cpuset.effective_cpus": "1\n", "job/step/cpuset.cpus": "0-1\n"}, "1"},
		{"version 1, old", v1, map[string]string{"job/step/cpuset.cpus": "0-1\n"}, "0-1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := CPUs(tt.membership, mounted(t, tt.membership == v2, "cpuset", tt.files)); got != tt.want {
				t.Errorf("CPUs %q, want %q", got, tt.want)
			}
		})
	}
}
