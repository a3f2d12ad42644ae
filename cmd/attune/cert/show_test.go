// SPDX-License-Identifier: Apache-2.0

package cert

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/cmd/attune/internal/cli"
	"github.com/attune-hpc/attune/internal/exitcode"
	"github.com/attune-hpc/attune/internal/pki"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// TestShowWhatHasEnded: a certificate that has ended is said to be of no use, a CA's too, and
// one whose key the asker may not read; and a file that cannot be read hides no other.
func TestShowWhatHasEnded(t *testing.T) {
	dir, err := os.MkdirTemp("", "certs") //nolint:usetesting // t.TempDir is in a directory of its owner's only
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	const ended = 1 // ns, of a time that is cut to seconds
	root, err := pki.NewAuthority("root", time.Hour)
	gone, later := pki.NewAuthority("root", ended)
	if err := errors.Join(err, later); err != nil {
		t.Fatal(err)
	}
	issue := func(name string, valid time.Duration) {
		issued, err := root.Issue(pki.Request{Name: name, Role: attunev1.Role_ROLE_NODE, Valid: valid})
		path := filepath.Join(dir, name)
		if err := errors.Join(err, issued.Write(path+".crt", path+".key", false), os.Chmod(path+".key", 0)); err != nil {
			t.Fatal(err)
		}
	}
	issue("lasts", time.Minute)
	issue("ended", ended)
	if err := errors.Join(os.Chmod(dir, 0o755), root.WriteRoots(filepath.Join(dir, "ca.crt")), gone.WriteRoots(filepath.Join(dir, "gone.crt"))); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		files, says, fails string
	}{
		{"lasts", "node lasts", ""},
		{"ca", "CA root", ""},
		{"ended", "expired", "ended.crt"},
		{"gone", "expired", "gone.crt"},
		{"none lasts", "node lasts", "none.crt"},
		{"none ended", "expired", "none.crt"},
	} {
		var paths []string
		for name := range strings.FieldsSeq(tt.files) {
			paths = append(paths, filepath.Join(dir, name+".crt"))
		}
		var out strings.Builder
		err := asSomebody(func() error { return showCertificates(&cli.Env{Stdout: &out, Stderr: io.Discard}, paths, false) })
		if !strings.Contains(out.String(), tt.says) {
			t.Errorf("%s: it says %q, want %q", tt.files, out.String(), tt.says)
		}
		if (err != nil) != (tt.fails != "") || err != nil && (exitcode.Of(err) != exitcode.Failure || !strings.Contains(err.Error(), tt.fails)) {
			t.Errorf("%s: %v, want %q", tt.files, err, tt.fails)
		}
	}
}

// asSomebody calls f so that permissions of files hold for root, too.
func asSomebody(f func() error) error {
	if os.Geteuid() == 0 {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		const nobody = 65534
		defer func() { _ = unix.Setfsuid(0) }() // of this thread, with the rights over files
		if err := unix.Setfsuid(nobody); err != nil {
			return err
		}
	}
	return f()
}
