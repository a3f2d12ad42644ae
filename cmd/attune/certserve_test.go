// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/attune-hpc/attune/internal/exitcode"
	"github.com/attune-hpc/attune/internal/pki"
	"github.com/attune-hpc/attune/internal/testing/confined"
	"github.com/attune-hpc/attune/internal/testing/files"
	"github.com/attune-hpc/attune/internal/testing/patience"
	"github.com/attune-hpc/attune/internal/testing/serviceuser"
	"github.com/attune-hpc/attune/packaging/systemd"
)

// TestCertServe: the issuing service, with the rights of its unit, renews certificates
// and its own, and says so.
func TestCertServe(t *testing.T) {
	dir := t.TempDir()
	for _, command := range []string{
		"init --ca root", "init --ca root --issuer issuer", "issue --ca issuer --uid 1001 --days 1 alice",
		"issue --ca issuer --role node --days 1 n1", "init --ca other", "issue --ca other --uid 1002 mallory",
	} {
		if got := shellIn(t, dir, "$ATTUNE_BINARY cert "+command, ""); got.code != 0 {
			t.Fatalf("%s: %+v", command, got)
		}
	}
	address, log := mustServeCA(t, filepath.Join(dir, "issuer"))
	for _, row := range []struct {
		name, file string
		code       int
		says       string
	}{
		{"a user", "alice/user.crt", 0, "user alice, user id 1001"},
		{"a node", "n1/node.crt", 0, "node n1"},
		{"whom nobody knows", "mallory/user.crt", 1, "the files are as they were"},
	} {
		file := filepath.Join(dir, row.file)
		before, err := pki.ReadCertificate(file)
		if err != nil {
			t.Fatal(err)
		}
		got := shellIn(t, dir, "$ATTUNE_BINARY cert renew --issuer "+address+" "+row.file, "")
		if got.code != row.code || !strings.Contains(got.stdout+got.stderr, row.says) {
			t.Errorf("%s: %+v, want %d and %q", row.name, got, row.code, row.says)
		}
		after, err := pki.ReadCertificate(file)
		if err != nil || after.Equal(before) != (row.code != 0) {
			t.Errorf("%s: %v, certificate until %v, then until %v", row.name, err, before.NotAfter, after.NotAfter)
		}
		if line := "serial=" + after.SerialNumber.Text(16) + " "; strings.Contains(log(), line) != (row.code == 0) {
			t.Errorf("%s: %q: the log is %s", row.name, line, log())
		}
	}
}

// mustServeCA serves a CA until the test ends. log is what the service has written.
func mustServeCA(t *testing.T, ca string) (address string, log func() string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "ca") //nolint:usetesting // another user passes to it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.CopyFS(filepath.Join(dir, "ca"), os.DirFS(ca)); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(dir, "ca", "ca.key"), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(filepath.Join(bin, "attune"), "cert", "serve", "--ca", filepath.Join(dir, "ca"), "--state-dir", filepath.Join(dir, "state"),
		"--listen", "127.0.0.1:0", "--host", "localhost,127.0.0.1")
	file := filepath.Join(t.TempDir(), "log")
	if cmd.Stderr, err = os.Create(file); err != nil {
		t.Fatal(err)
	}
	log = func() string {
		text := files.Read(t, file)
		return string(text)
	}
	serviceuser.Must(t, cmd, dir)
	confined.Apply(t, cmd, "../../internal/testing/confined", systemd.Issuer, dir)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		if err := cmd.Wait(); err != nil {
			t.Errorf("the service: %v: %s", err, log())
		}
	})
	serving := regexp.MustCompile(`msg=serving address=(\S+)`)
	patience.Until(t, "the service", func() bool { return serving.MatchString(log()) })
	return serving.FindStringSubmatch(log())[1], log
}

// TestIssuerIsNotRoot: nobody starts it with root's rights by mistake, nor is told of root's
// rights what its settings are worth.
func TestIssuerIsNotRoot(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("a user may run it")
	}
	dir := t.TempDir()
	got := shellIn(t, dir, "$ATTUNE_BINARY cert init --ca root && $ATTUNE_BINARY cert init --ca root --issuer issuer && $ATTUNE_BINARY cert serve --ca issuer --state-dir "+dir+"/state", "")
	if got.code != exitcode.Usage || !strings.Contains(got.stderr, "does not run as root; `systemctl start") {
		t.Errorf("%+v", got)
	}
	got = shellIn(t, dir, "$ATTUNE_BINARY cert serve --ca issuer --check-config", "")
	if got.code != exitcode.Usage || !strings.Contains(got.stderr, "setpriv --reuid=attune-ca --regid=attune-ca --init-groups attune cert serve --check-config") {
		t.Errorf("%+v", got)
	}
	if _, err := os.Stat(filepath.Join(dir, "state")); err == nil {
		t.Error("it has made its directory")
	}
}

// TestIssuerSettings checks settings without serving, as the user who serves.
func TestIssuerSettings(t *testing.T) {
	dir := t.TempDir()
	if got := shellIn(t, dir, "$ATTUNE_BINARY cert init --ca root && $ATTUNE_BINARY cert init --ca root --issuer issuer", ""); got.code != 0 {
		t.Fatalf("%+v", got)
	}
	for _, tt := range []struct {
		name, flags string
		code        int
		says        string
	}{
		{"the root", "--ca root", exitcode.Usage, "keep its key off line"},
		{"no CA", "--ca none", exitcode.Usage, "attune cert init"},
		{"nowhere", "--ca issuer --listen here", exitcode.Usage, "want HOST:PORT"},
		{"for no time", "--ca issuer --days -1", exitcode.Usage, "--days"},
		{"an issuing CA", "--ca issuer", exitcode.OK, "configuration is valid"},
	} {
		cmd := exec.Command(filepath.Join(bin, "attune"), append([]string{"cert", "serve", "--check-config"}, strings.Fields(tt.flags)...)...)
		cmd.Dir = dir
		serviceuser.Must(t, cmd, dir)
		out, _ := cmd.CombinedOutput() // its code says it
		if code := cmd.ProcessState.ExitCode(); code != tt.code || !strings.Contains(string(out), tt.says) {
			t.Errorf("%s: code %d, %s, want %d and %q", tt.name, code, out, tt.code, tt.says)
		}
	}
}
