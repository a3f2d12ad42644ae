// SPDX-License-Identifier: Apache-2.0

package pki_test

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/attune-hpc/attune/internal/pki"
	"github.com/attune-hpc/attune/internal/testing/pkitest"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

var node = pki.Request{Name: "n1", Role: attunev1.Role_ROLE_NODE, Hosts: []string{"n1"}}

// opened is an identity with its log.
func opened(t *testing.T, files pki.Files) (*pki.Identity, *bytes.Buffer) {
	t.Helper()
	var log bytes.Buffer
	identity, err := pki.Open(files, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	return identity, &log
}

// TestReplacement: whatever becomes of the files, there is a certificate, and
// the log says what is wrong with the new one, once.
func TestReplacement(t *testing.T) {
	other := pkitest.New(t)
	tests := []struct {
		name    string
		replace func(t *testing.T, files pki.Files) error
		why     string // empty: the new one is taken
	}{
		{"nothing", func(*testing.T, pki.Files) error { return nil }, ""},
		{"key of another certificate", func(t *testing.T, files pki.Files) error {
			return os.Rename(other.Issue(t, node).Key, files.Key)
		}, "private key does not match public key"},
		{"certificate of another CA", func(t *testing.T, files pki.Files) error {
			made := other.Issue(t, node)
			return errors.Join(os.Rename(made.Key, files.Key), os.Rename(made.Cert, files.Cert))
		}, "is not of the CA"},
		{"garbage", func(_ *testing.T, files pki.Files) error { return os.WriteFile(files.Cert, []byte("x"), 0o600) }, "certificate"},
		{"half a file", func(_ *testing.T, files pki.Files) error { return os.Truncate(files.Cert, 100) }, "certificate"},
		{"no CA", func(_ *testing.T, files pki.Files) error { return os.Truncate(files.CA, 0) }, "not a list of PEM certificates"},
		{"removed", func(_ *testing.T, files pki.Files) error { return os.Remove(files.Key) }, "no such file"},
		{"key for everybody", func(_ *testing.T, files pki.Files) error { return os.Chmod(files.Key, 0o644) }, "chmod 600"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			files := pkitest.New(t).Issue(t, node)
			identity, log := opened(t, files)
			before := identity.Leaf()
			if err := tt.replace(t, files); err != nil {
				t.Fatal(err)
			}
			for range 3 {
				if certificate, err := identity.Certificate(); err != nil || !certificate.Leaf.Equal(before) {
					t.Errorf("certificate %v, %v", certificate.Leaf, err)
				}
			}
			if tt.why == "" {
				if log.Len() > 0 {
					t.Errorf("log: %s", log)
				}
				return
			}
			if n := strings.Count(log.String(), "\n"); n != 1 || !strings.Contains(log.String(), tt.why) {
				t.Errorf("log: %s, want one line with %q", log, tt.why)
			}
		})
	}
}

// TestReplacedTooEarly: a certificate whose time has not begun by this machine's clock is used when
// it has, though its files do not change any more.
func TestReplacedTooEarly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // whose time is long before that of the files: they are not new
		site, clock := pkitest.New(t), new(pkitest.Clock)
		var log bytes.Buffer
		identity, err := pki.OpenAt(site.Issue(t, node), slog.New(slog.NewTextHandler(&log, nil)), clock.Now)
		if err != nil {
			t.Fatal(err)
		}
		before := identity.Leaf()
		time.Sleep(10 * time.Minute)
		clock.Set(-6 * time.Minute)
		site.Issue(t, node)
		for range 3 {
			if !identity.Leaf().Equal(before) {
				t.Error("a certificate is used before its time")
			}
		}
		clock.Set(0)
		if identity.Leaf().Equal(before) {
			t.Error("the certificate is not used in its time")
		}
		if n := strings.Count(log.String(), "cannot be used"); n != 1 {
			t.Errorf("%d times in the log, want once: %s", n, &log)
		}
	})
}

// TestReplacedCA: what is trusted follows the file too.
func TestReplacedCA(t *testing.T) {
	site, other := pkitest.New(t), pkitest.New(t)
	files := site.Issue(t, node)
	identity, _ := opened(t, files)
	stranger := leaf(t, other.Sign(t, pkitest.Template()))
	believed := func() bool {
		config, err := identity.ServerConfig().GetConfigForClient(new(tls.ClientHelloInfo))
		if err != nil {
			t.Fatal(err)
		}
		_, err = stranger.Verify(x509.VerifyOptions{Roots: config.ClientCAs})
		return err == nil
	}
	if believed() {
		t.Fatal("another CA is believed")
	}
	own, err := os.ReadFile(files.CA)
	if err != nil {
		t.Fatal(err)
	}
	more, err := os.ReadFile(other.Issue(t, node).CA)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(files.CA, append(own, more...), 0o644); err != nil {
		t.Fatal(err)
	}
	if !believed() {
		t.Error("the CA that was added is not believed")
	}
}

func leaf(t *testing.T, certificate tls.Certificate) *x509.Certificate {
	t.Helper()
	parsed, err := x509.ParseCertificate(certificate.Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

// TestOpenAs: a service starts with a certificate of its own role only.
func TestOpenAs(t *testing.T) {
	site := pkitest.New(t)
	files := site.Issue(t, node)
	if _, err := pki.OpenAs(attunev1.Role_ROLE_NODE, files, nil); err != nil {
		t.Error(err)
	}
	_, err := pki.OpenAs(attunev1.Role_ROLE_ANALYZER, files, nil)
	if err == nil || !strings.Contains(err.Error(), "attune cert issue --role analyzer") {
		t.Errorf("as an Analyzer: %v, want the remedy", err)
	}
}

func TestOpenRefuses(t *testing.T) {
	site, other := pkitest.New(t), pkitest.New(t)
	good := site.Issue(t, node)
	foreign := other.Issue(t, pki.Request{Name: "n2", Role: attunev1.Role_ROLE_NODE})
	tests := []struct {
		name  string
		files pki.Files
		why   string
	}{
		{"nothing", pki.Files{}, "belong together"},
		{"no key", pki.Files{CA: good.CA, Cert: good.Cert}, "no file with the key"},
		{"not there", pki.FilesIn(t.TempDir(), "node"), "no such file"},
		{"another CA", pki.Files{CA: good.CA, Cert: foreign.Cert, Key: foreign.Key}, "is not of the CA"},
		{"another key", pki.Files{CA: good.CA, Cert: good.Cert, Key: foreign.Key}, "does not match"},
		{"key as CA", pki.Files{CA: good.Key, Cert: good.Cert, Key: good.Key}, "besides certificates"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := pki.Open(tt.files, nil); err == nil || !strings.Contains(err.Error(), tt.why) {
				t.Errorf("%v, want %q", err, tt.why)
			}
		})
	}
}

// TestRemind: a certificate that ends soon is told of once a day, one that has
// time not at all.
func TestRemind(t *testing.T) {
	site, clock := pkitest.New(t), new(pkitest.Clock)
	lasting := node
	lasting.Valid = 10 * 24 * time.Hour
	files := site.Issue(t, lasting)
	var log bytes.Buffer
	identity, err := pki.OpenAt(files, slog.New(slog.NewTextHandler(&log, nil)), clock.Now)
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct{ day, want int }{{0, 0}, {7, 0}, {8, 1}, {8, 1}, {9, 2}} {
		clock.Set(time.Duration(row.day)*24*time.Hour + time.Hour)
		identity.Leaf()
		if n := strings.Count(log.String(), "expires soon"); n != row.want {
			t.Errorf("on day %d: %d, want %d: %s", row.day, n, row.want, &log)
		}
	}
}

// TestTimeOfACertificate: it holds from shortly before it was issued until it
// ends, by the clock at hand.
func TestTimeOfACertificate(t *testing.T) {
	files, clock := pkitest.New(t).Issue(t, node), new(pkitest.Clock)
	identity := pkitest.OpenAt(t, files, clock)
	for _, row := range []struct {
		name  string
		ahead time.Duration
		want  error
	}{
		{"when it is issued", 0, nil},
		{"by a clock that is behind", -4 * time.Minute, nil},
		{"by a clock that is far behind", -6 * time.Minute, pki.ErrNotYetValid},
		{"before its end", 59 * time.Minute, nil},
		{"after its end", 61 * time.Minute, pki.ErrExpired},
	} {
		clock.Set(row.ahead)
		if _, err := identity.Certificate(); !errors.Is(err, row.want) {
			t.Errorf("%s: %v, want %v", row.name, err, row.want)
		}
		if _, err := pki.OpenAt(files, nil, clock.Now); !errors.Is(err, row.want) {
			t.Errorf("opened %s: %v, want %v", row.name, err, row.want)
		}
	}
	if err := os.Remove(files.Key); err != nil {
		t.Fatal(err)
	}
	if _, err := pki.OpenAt(files, nil, clock.Now); !errors.Is(err, pki.ErrExpired) {
		t.Errorf("without its key: %v, want %v", err, pki.ErrExpired)
	}
}

// TestAuthority: what is written is what is read.
func TestAuthority(t *testing.T) {
	dir := t.TempDir()
	authority, err := pki.NewAuthority("CA", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	files, err := authority.PEM()
	if err != nil {
		t.Fatal(err)
	}
	cert, key := filepath.Join(dir, "ca.crt"), filepath.Join(dir, "ca.key")
	if err := files.Write(cert, key, false); err != nil {
		t.Fatal(err)
	}
	if err := files.Write(cert, key, false); !errors.Is(err, os.ErrExist) {
		t.Errorf("written twice: %v", err)
	}
	read, err := pki.ReadAuthority(dir)
	if err != nil || !read.Certificate().Equal(authority.Certificate()) {
		t.Fatalf("%v, %v", read, err)
	}
	if err := os.Chmod(key, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := pki.ReadAuthority(dir); err == nil {
		t.Error("a CA whose key everybody may read is used")
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 2 {
		t.Errorf("%v, %v: files left behind", left, err)
	}
}

// TestParseAuthority: a certificate that is no CA's issues nothing.
func TestParseAuthority(t *testing.T) {
	site := pkitest.New(t)
	files := site.Issue(t, node)
	cert, err := os.ReadFile(files.Cert)
	if err != nil {
		t.Fatal(err)
	}
	key, err := os.ReadFile(files.Key)
	if err != nil {
		t.Fatal(err)
	}
	ca, err := os.ReadFile(files.CA)
	if err != nil {
		t.Fatal(err)
	}
	for name, issued := range map[string]pki.Issued{
		"a node's":    {Cert: cert, Key: key},
		"another key": {Cert: ca, Key: key},
		"no key":      {Cert: ca, Key: ca},
		"two":         {Cert: append(bytes.Clone(ca), ca...), Key: key},
		"nothing":     {},
	} {
		if _, err := pki.ParseAuthority(issued); err == nil {
			t.Errorf("%s: taken for a CA", name)
		}
	}
}

// TestRootLooksAtServices: root is told of a certificate that belongs to a service's user as
// that user would be, and does not use it.
func TestRootLooksAtServices(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root looks at others' certificates")
	}
	const service, other = 61001, 61002
	for _, tt := range []struct {
		name  string
		owner int // of the key
		why   string
	}{
		{"the service's", service, ""},
		{"root's", 0, ""},
		{"another's", other, "belongs to user 61002: chown 61001"},
	} {
		files := pkitest.New(t).Issue(t, node)
		if err := errors.Join(os.Chown(files.Cert, service, -1), os.Chown(files.Key, tt.owner, -1)); err != nil {
			t.Fatal(err)
		}
		if _, err := pki.ReadCertificate(files.Cert); err != nil {
			t.Errorf("%s: %v", tt.name, err)
		}
		if err := files.Check(); (err == nil) != (tt.why == "") || err != nil && !strings.Contains(err.Error(), tt.why) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.why)
		}
		if _, err := pki.Open(files, slog.New(slog.DiscardHandler)); err == nil {
			t.Errorf("%s: root uses it", tt.name)
		}
	}
}
