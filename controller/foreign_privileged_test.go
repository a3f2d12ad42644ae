// SPDX-License-Identifier: Apache-2.0

//go:build privileged

package controller

import (
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/testing/targets"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// TestForeign: in a session of a user a service enters their own processes only,
// although as root it could enter all.
func TestForeign(t *testing.T) {
	const alice, bob = 61001, 61002
	tests := []struct {
		name    string
		process syscall.SysProcAttr
		reached bool
	}{
		{"own", syscall.SysProcAttr{Credential: &syscall.Credential{Uid: alice, Gid: alice}}, true},
		{"another user's", syscall.SysProcAttr{Credential: &syscall.Credential{Uid: bob, Gid: bob}}, false},
		{"root's", syscall.SysProcAttr{}, false},
		{"own with a capability", syscall.SysProcAttr{
			Credential: &syscall.Credential{Uid: alice, Gid: alice}, AmbientCaps: []uintptr{unix.CAP_NET_BIND_SERVICE},
		}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := start(t, func(c *Config) {
				c.UseBPF = true
				c.Session = Session{
					Registration: "r", Job: &attunev1.Job{},
					User:  &attunev1.Principal{Name: "alice", Uid: alice, Role: attunev1.Role_ROLE_USER},
					Owner: &attunev1.Principal{Name: "alice", Uid: alice, Role: attunev1.Role_ROLE_USER},
				}
			})
			b.addPoint(t, 1, call("nanosleep", false))
			cmd := exec.Command("sh", "-c", "echo ready; read line")
			cmd.SysProcAttr = &tt.process
			pid := targets.StartCommand(t, cmd).PID // which has been exec'd: the kernel has told of it
			a, err := b.controller.Attach(t.Context(), pid)
			if err != nil {
				t.Fatal(err)
			}
			left := a.NotInjected != nil && strings.Contains(a.NotInjected.Error(), "is left alone")
			if left == tt.reached {
				t.Errorf("reached: %v, want %v: %v", !left, tt.reached, a.NotInjected)
			}
			for _, m := range b.controller.members.OfPID(pid).Snapshot().GetMechanisms() {
				if !tt.reached && (m.GetAvailable() || !strings.Contains(m.GetReason(), "is left alone")) {
					t.Errorf("%v", m)
				}
			}
			a.Leave(t.Context())
			b.stop(t)
		})
	}
}
