// SPDX-License-Identifier: Apache-2.0

// Package serviceuser starts the Analyzer of tests and benchmarks that run as root:
// as the user of its unit, which the file for systemd-sysusers makes. For everybody
// else it does nothing: their Analyzer is their own.
//
// It has no state; everything may be used from any goroutine.
package serviceuser

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/attune-hpc/attune/internal/authn"
	"github.com/attune-hpc/attune/packaging/systemd"
)

// Must is Become for tests.
func Must(t testing.TB, cmd *exec.Cmd, dirs ...string) {
	t.Helper()
	if err := Become(t.Context(), cmd, dirs...); err != nil {
		t.Fatal(err)
	}
}

// Become has a command that is not started yet run as the Analyzer's user, who gets
// the directories, made if need be, with all that is in them, and may pass to them.
func Become(ctx context.Context, cmd *exec.Cmd, dirs ...string) error {
	if os.Geteuid() != 0 {
		return nil
	}
	uid, gid, err := ids(ctx)
	if err != nil {
		return err
	}
	for _, dir := range dirs {
		if err := give(dir, uid, gid); err != nil {
			return err
		}
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
	return nil
}

// ids are those of the user, who is made if need be.
func ids(ctx context.Context) (uid, gid int, err error) {
	found, err := user.Lookup(authn.ServiceUser)
	if err != nil {
		sysusers := exec.CommandContext(ctx, "systemd-sysusers", "-")
		sysusers.Stdin = strings.NewReader(systemd.Users)
		if out, err := sysusers.CombinedOutput(); err != nil {
			return 0, 0, fmt.Errorf("make user %s (scripts/deps test installs systemd): %w: %s", authn.ServiceUser, err, out)
		}
		if found, err = user.Lookup(authn.ServiceUser); err != nil {
			return 0, 0, err
		}
	}
	if uid, err = strconv.Atoi(found.Uid); err == nil {
		gid, err = strconv.Atoi(found.Gid)
	}
	return uid, gid, err
}

// give gives a directory to the user.
func give(dir string, uid, gid int) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	err = filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, uid, gid)
	})
	if err != nil {
		return err
	}
	for above := filepath.Dir(dir); above != "/"; above = filepath.Dir(above) {
		info, err := os.Stat(above)
		if err != nil {
			return err
		}
		if info.Mode()&0o001 == 0 {
			if err := os.Chmod(above, info.Mode()|0o011); err != nil {
				return err
			}
		}
	}
	return nil
}
