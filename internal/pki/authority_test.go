// SPDX-License-Identifier: Apache-2.0

package pki_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/pki"
	"github.com/attune-hpc/attune/internal/testing/pkitest"
)

// TestIssuer: who believes the root believes what an issuing CA of its issues, and no
// CA that this one would make.
func TestIssuer(t *testing.T) {
	site, dir := pkitest.New(t), t.TempDir()
	made := site.Issuer(t)
	files, err := made.PEM()
	if err != nil {
		t.Fatal(err)
	}
	if err := files.Write(filepath.Join(dir, "ca.crt"), filepath.Join(dir, "ca.key"), false); err != nil {
		t.Fatal(err)
	}
	issuer, err := pki.ReadAuthority(dir)
	if err != nil {
		t.Fatal(err)
	}
	if issuer.IsRoot() {
		t.Error("it is taken for a root")
	}
	request := node
	request.Valid = time.Hour
	issued, err := issuer.Issue(request)
	if err != nil {
		t.Fatal(err)
	}
	own := pki.FilesIn(t.TempDir(), "node")
	if err := issued.Write(own.Cert, own.Key, false); err != nil {
		t.Fatal(err)
	}
	if err := issuer.WriteRoots(own.CA); err != nil {
		t.Fatal(err)
	}
	root, err := os.ReadFile(site.Issue(t, node).CA)
	if err != nil {
		t.Fatal(err)
	}
	if wrote, err := os.ReadFile(own.CA); err != nil || !bytes.Equal(wrote, root) {
		t.Errorf("%v: the root's certificate was not written, but %s", err, wrote)
	}
	if _, err := pki.Open(own, nil); err != nil {
		t.Error(err)
	}
	if _, err := issuer.NewIssuer("below", time.Hour); err == nil || !strings.Contains(err.Error(), "may not sign another CA") {
		t.Errorf("a CA below an issuing CA: %v", err)
	}
}

// TestParseIssuer: a chain that does not lead to a root is refused.
func TestParseIssuer(t *testing.T) {
	issuer, err := pkitest.New(t).Issuer(t).PEM()
	if err != nil {
		t.Fatal(err)
	}
	foreign, err := pki.NewAuthority("CA", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	other, err := foreign.PEM()
	if err != nil {
		t.Fatal(err)
	}
	end := []byte("-----END CERTIFICATE-----\n")
	below, above, _ := bytes.Cut(issuer.Cert, end)
	below = append(below, end...)
	for name, chain := range map[string][]byte{
		"no root":         below,
		"another root":    append(bytes.Clone(below), other.Cert...),
		"the wrong way":   append(bytes.Clone(above), below...),
		"one root more":   append(bytes.Clone(issuer.Cert), above...),
		"a key behind it": append(bytes.Clone(issuer.Cert), issuer.Key...),
	} {
		if _, err := pki.ParseAuthority(pki.Issued{Cert: chain, Key: issuer.Key}); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
}

// TestWritesAtOneTime: of several that replace a certificate at the same time, one's
// certificate and key are there in the end. Whoever may read the directory cannot hold
// them up.
func TestWritesAtOneTime(t *testing.T) {
	site := pkitest.New(t)
	files, ca := site.Issue(t, node), site.Issuer(t)
	request := node
	request.Valid = time.Hour
	held, err := os.Open(filepath.Dir(files.Key))
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	if err := unix.Flock(int(held.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for range 16 {
		issued, err := ca.Issue(request)
		if err != nil {
			t.Fatal(err)
		}
		all.Go(func() {
			if err := issued.Write(files.Cert, files.Key, true); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if info, err := os.Stat(filepath.Join(filepath.Dir(files.Key), ".n1.key.lock")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the lock: %v, %v", info, err)
	}
	if _, err := pki.Open(files, nil); err != nil {
		t.Error(err)
	}
}
