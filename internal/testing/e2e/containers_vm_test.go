// SPDX-License-Identifier: Apache-2.0

//go:build vm

package e2e

import (
	"encoding/json"
	"os/exec"
	"strconv"
	"strings"
	"testing"
)

// What makes a container is no hindrance, wherever Attune stands.
func TestContainers(t *testing.T) {
	folder := programs(t)
	programs := folder + "/moving <$0; exec " + folder + "/still"
	// A file system of the container's own, which nobody else sees.
	const private = "set -e; mount -t tmpfs private /mnt; "
	tests := []struct {
		name    string
		prefix  []string
		command []string
		refusal string
	}{
		{"program in namespaces", nil,
			[]string{"unshare", "--pid", "--fork", "--mount", "--mount-proc", "--uts", "--ipc", "--net", "sh", "-c", programs}, ""},
		{"program of a private file system", nil,
			[]string{"unshare", "--mount", "sh", "-c", private + "cp " + folder + "/* /mnt; /mnt/moving <$0; exec /mnt/still"}, ""},
		{"program of an overlay", nil,
			[]string{"unshare", "--mount", "sh", "-c", private + "mkdir /mnt/upper /mnt/work /mnt/all; " +
				"mount -t overlay -o lowerdir=" + folder + ",upperdir=/mnt/upper,workdir=/mnt/work overlay /mnt/all; " +
				"/mnt/all/moving <$0; exec /mnt/all/still"}, ""},
		{"attune in a pid namespace", []string{"unshare", "--pid", "--fork", "--mount", "--mount-proc", "--"},
			[]string{"sh", "-c", programs}, ""},
		{"attune as root of a user namespace",
			append(nobody(), "unshare", "--user", "--map-root-user", "--pid", "--fork", "--mount", "--mount-proc", "--"),
			[]string{"sh", "-c", programs}, "not permitted"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			o := observe(t, tt.prefix, tt.command...)
			o.wantOutput(t)
			o.wantHooked(t, "")
			o.wantProbed(t, tt.refusal)
		})
	}
}

// attune ps outside lists what runs in a container, by the number that it has
// outside.
func TestContainersAreListed(t *testing.T) {
	cmd := exec.Command("unshare", "--pid", "--fork", "--mount", "--mount-proc", "sleep", "611")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	defer cmd.Process.Kill()
	inside := ""
	for inside == "" { // until it has forked
		inside = strings.TrimSpace(run(t, "sh", "-c", "pgrep -P "+strconv.Itoa(cmd.Process.Pid)+" sleep || true"))
	}
	defer exec.Command("kill", "-KILL", inside).Run()
	var listed []struct{ PID int }
	if err := json.Unmarshal([]byte(run(t, attune, "ps", "--json")), &listed); err != nil {
		t.Fatal(err)
	}
	for _, p := range listed {
		if strconv.Itoa(p.PID) == inside {
			return
		}
	}
	t.Errorf("process %s is not among %v", inside, listed)
}
