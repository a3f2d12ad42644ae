// SPDX-License-Identifier: Apache-2.0

package peercred

import (
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/attune-hpc/attune/internal/testing/files"
)

// A socket that was left is replaced, anything else is not.
func TestListen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "socket")
	left, err := net.ListenUnix("unix", &net.UnixAddr{Net: "unix", Name: path})
	if err != nil {
		t.Fatal(err)
	}
	left.SetUnlinkOnClose(false)
	if err := left.Close(); err != nil {
		t.Fatal(err)
	}
	listener, err := Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode() != os.ModeSocket|everybody {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if err := listener.Close(); err != nil {
		t.Error(err)
	}
	files.Write(t, path, "kept", 0o600)
	if _, err := Listen(path); err == nil {
		t.Error("a file was replaced")
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != "kept" {
		t.Errorf("%q, %v", text, err)
	}
}
