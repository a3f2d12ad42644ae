// SPDX-License-Identifier: Apache-2.0

//go:build privileged

package embed_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/attune-hpc/attune/internal/registry/embed"
	"github.com/attune-hpc/attune/internal/testing/patience"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// Another user of the host may only ask for Analyzers.
func TestOtherUserOfTheHost(t *testing.T) {
	const nobody = 65534
	dir := t.TempDir()
	if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil { // others have to get there
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	code, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(dir, "program")
	if err := os.WriteFile(program, code, 0o755); err != nil {
		t.Fatal(err)
	}
	server := mustStart(t, embed.Options{Socket: filepath.Join(dir, "socket")})
	service := mustOpen(t, server.URL(), nil)
	mustPut(t, service, "solver")
	if _, err := service.Announce(t.Context(), &attunev1.AnalyzerRecord{Id: "a"}); err != nil {
		t.Fatal(err)
	}
	as := func(uid uint32, c child) *exec.Cmd {
		options, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		command := exec.Command(program)
		command.Env = append(os.Environ(), serveVariable+"="+string(options))
		command.Stdout = t.Output()
		command.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
		return command
	}
	if err := as(nobody, child{Find: server.URL()}).Run(); err != nil {
		t.Errorf("another user cannot find Analyzers: %v", err)
	}
	if err := as(nobody, child{Put: server.URL()}).Run(); err == nil {
		t.Error("another user has written to the registry")
	}
	list, err := service.Registrations(patience.Context(t))
	if err != nil || len(list) != 1 {
		t.Errorf("registrations: %v, %v", list, err)
	}
	if err := as(0, child{Put: server.URL()}).Run(); err != nil {
		t.Errorf("root is a service, and cannot write: %v", err)
	}
}
