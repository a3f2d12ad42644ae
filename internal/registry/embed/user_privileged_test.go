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
	"time"

	"github.com/attune-hpc/attune/internal/registry/embed"
	"github.com/attune-hpc/attune/internal/testing/asuser"
	"github.com/attune-hpc/attune/internal/testing/files"
	"github.com/attune-hpc/attune/internal/testing/patience"
	"github.com/attune-hpc/attune/internal/testing/serviceuser"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// Another user of the host may only ask for Analyzers, an admin by certificate too: the
// kernel knows users, root and the Analyzer's user.
func TestOtherUserOfTheHost(t *testing.T) {
	const nobody = 65534
	dir := asuser.Folder(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	code := files.Read(t, self)
	program := filepath.Join(dir, "program")
	files.Write(t, program, code, 0o755)
	server := mustStart(t, embed.Options{Socket: filepath.Join(dir, "socket")})
	service := mustOpen(t, server.URL(), nil)
	mustPut(t, service, "solver")
	if _, err := service.Announce(t.Context(), &attunev1.AnalyzerRecord{Id: "a"}, nil); err != nil {
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
	for _, uid := range []uint32{nobody, 5001, 5002, 5003} {
		if err := as(uid, child{Find: server.URL()}).Run(); err != nil {
			t.Errorf("user %d cannot find Analyzers: %v", uid, err)
		}
		if err := as(uid, child{Put: server.URL(), Within: 3 * time.Second}).Run(); err == nil {
			t.Errorf("user %d has written to the registry", uid)
		}
	}
	list, err := service.Registrations(patience.Context(t))
	if err != nil || len(list) != 1 {
		t.Errorf("registrations: %v, %v", list, err)
	}
	mustPut(t, service, "solver")
	analyzers := as(0, child{Put: server.URL(), Within: patience.Limit})
	serviceuser.Must(t, analyzers)
	if err := analyzers.Run(); err != nil {
		t.Errorf("the Analyzer's user is a service, and cannot write: %v", err)
	}
}
