// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/bounded"
	"github.com/attune-hpc/attune/internal/trusted"
)

// Directory is where a site keeps certificates of a machine, and its CA.
const Directory = "/etc/attune/pki"

// StateDirectory is where attuned keeps the machine's certificate if it renews it: it may
// write there, and not in Directory.
const StateDirectory = "/var/lib/attune/pki"

// maxFile bounds each file, bytes.
const maxFile = 1 << 20

// Files are where one's certificate is, all in PEM.
type Files struct {
	// CA has the certificates of those whose word is taken.
	CA string
	// Cert has one's own certificate, then those between it and the CA, if any.
	Cert string
	// Key has the private key to it. Nobody else may read it.
	Key string
}

// FilesIn are those of a directory: ca.crt, NAME.crt and NAME.key.
func FilesIn(dir, name string) Files {
	return Files{
		CA:   filepath.Join(dir, "ca.crt"),
		Cert: filepath.Join(dir, name+".crt"),
		Key:  filepath.Join(dir, name+".key"),
	}
}

// Validate says what is not named.
func (f Files) Validate() error {
	for _, file := range []struct{ what, path string }{{"CA's certificate", f.CA}, {"certificate", f.Cert}, {"key", f.Key}} {
		if file.path == "" {
			return fmt.Errorf("no file with the %s is named: CA, certificate and key belong together", file.what)
		}
	}
	return nil
}

// material is the content of Files.
type material struct {
	certificate tls.Certificate // with Leaf
	roots       *x509.CertPool
}

// load reads and checks Files for a user who reads them. now is for whether the certificate
// holds. The key comes last: whoever may not read it still finds out what is wrong with the
// certificate.
func (f Files) load(now time.Time, reader int) (material, error) {
	var m material
	if err := f.Validate(); err != nil {
		return m, err
	}
	roots, err := readFile(f.CA, public, reader)
	if err != nil {
		return m, fmt.Errorf("certificate of the CA: %w", err)
	}
	if m.roots, err = parsePool(roots); err != nil {
		return m, fmt.Errorf("certificate of the CA %s: %w", f.CA, err)
	}
	chain, err := readFile(f.Cert, public, reader)
	if err != nil {
		return m, fmt.Errorf("certificate: %w", err)
	}
	if err := f.check(chain, m.roots, now); err != nil {
		return m, err
	}
	key, err := readFile(f.Key, private, reader)
	if err != nil {
		return m, fmt.Errorf("private key: %w", err)
	}
	if m.certificate, err = tls.X509KeyPair(chain, key); err != nil {
		return m, fmt.Errorf("certificate %s with key %s: %w", f.Cert, f.Key, err)
	}
	return m, nil
}

// check finds out now what every peer would say: it can tell only "bad
// certificate".
func (f Files) check(chain []byte, roots *x509.CertPool, now time.Time) error {
	leaf, between, err := parseChain(chain)
	if err != nil {
		return fmt.Errorf("certificate %s: %w", f.Cert, err)
	}
	if err := Holds(leaf, now); err != nil {
		return fmt.Errorf("certificate %s of %q: %w", f.Cert, leaf.Subject.CommonName, err)
	}
	_, err = leaf.Verify(x509.VerifyOptions{
		Roots: roots, Intermediates: between, CurrentTime: now,
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny},
	})
	if err != nil {
		return fmt.Errorf("certificate %s of %q is not of the CA in %s: %w", f.Cert, leaf.Subject.CommonName, f.CA, err)
	}
	return nil
}

// Holds says whether a certificate is in its time: [ErrExpired], [ErrNotYetValid].
func Holds(certificate *x509.Certificate, now time.Time) error {
	switch {
	case now.After(certificate.NotAfter):
		remedy := "issue a new one (attune cert issue --replace)"
		if certificate.IsCA {
			remedy = "make a new one (attune cert init)"
		}
		return fmt.Errorf("%w on %s, and cannot be renewed any more: %s",
			ErrExpired, certificate.NotAfter.Local().Format(time.DateTime), remedy)
	case now.Before(certificate.NotBefore):
		return fmt.Errorf("%w before %s: is this machine's clock right?",
			ErrNotYetValid, certificate.NotBefore.Local().Format(time.DateTime))
	}
	return nil
}

var (
	// ErrExpired means that one's certificate has ended.
	ErrExpired = errors.New("expired")
	// ErrNotYetValid means that the time of one's certificate has not begun.
	ErrNotYetValid = errors.New("not valid")
)

// parsePool takes all certificates of a PEM file.
func parsePool(data []byte) (*x509.CertPool, error) {
	certificates, err := decodeCertificates(data)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	for _, c := range certificates {
		pool.AddCert(c)
	}
	return pool, nil
}

// secrecy says who else may read a file.
type secrecy bool

const (
	public  secrecy = false
	private secrecy = true
)

// readFile reads a file that nobody but a user, its reader, or root can have written,
// and of a private one that nobody else can have read.
func readFile(path string, secret secrecy, reader int) ([]byte, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if secret == private && errors.Is(err, os.ErrPermission) {
		return nil, fmt.Errorf("%w; root lets a service read its key in /etc/attune by `systemd-tmpfiles --create attune-analyzer.conf`, another one by `chgrp USER %[2]s; chmod 640 %[2]s`", err, path)
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var st unix.Stat_t
	if err := unix.Fstat(int(file.Fd()), &st); err != nil {
		return nil, err
	}
	if err := suited(path, &st, secret, reader); err != nil {
		return nil, err
	}
	return bounded.ReadAll(path, file, maxFile)
}

// readerFor is the user for whom root looks at a file: its owner. Others look for themselves.
func readerFor(path string) int {
	var st unix.Stat_t
	if self := os.Geteuid(); self != 0 || unix.Stat(path, &st) != nil {
		return self
	}
	return int(st.Uid)
}

// suited checks owner and mode. A key of root's may be read by a group, so that
// a service without root's rights can have it.
func suited(path string, st *unix.Stat_t, secret secrecy, reader int) error {
	hidden := uint32(0o077)
	if st.Uid == 0 {
		hidden = 0o037
	}
	if err := trusted.File(path, st, reader, 0); err != nil {
		return err
	}
	switch {
	case secret == private && st.Mode&hidden != 0:
		return fmt.Errorf("%s may be read by others: chmod 600 %s, and if somebody may have read it, issue a new one", path, path)
	case st.Size > maxFile:
		return fmt.Errorf("%s has %d bytes, at most %d", path, st.Size, maxFile)
	}
	return nil
}
