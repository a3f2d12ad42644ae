// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/outfile"
)

// ReadAuthority reads the CA of a directory: ca.crt and ca.key.
func ReadAuthority(dir string) (*Authority, error) {
	cert, err := readFile(filepath.Join(dir, "ca.crt"), public, os.Geteuid())
	if err != nil {
		return nil, err
	}
	key, err := readFile(filepath.Join(dir, "ca.key"), private, os.Geteuid())
	if err != nil {
		return nil, err
	}
	return ParseAuthority(Issued{Cert: cert, Key: key})
}

// ReadCertificate reads the first certificate of a PEM file. It is not checked. Root reads
// anybody's.
func ReadCertificate(path string) (*x509.Certificate, error) {
	data, err := readFile(path, public, readerFor(path))
	if err != nil {
		return nil, err
	}
	certificate, _, err := parseChain(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return certificate, nil
}

// Check says why the files cannot be used now, as Open would: to root, as the certificate's
// owner would be told.
func (f Files) Check() error {
	_, err := f.load(time.Now(), readerFor(f.Cert))
	return err
}

// Write writes certificate and key, the key for its owner only, and for the group that
// may read root's key which is replaced. Files that are
// there are [os.ErrExist] unless they are to be replaced; then both are ready
// under other names first, so that whoever reads them gets the old or the new
// ones, or a pair that does not match and is there for a moment only. Of two processes
// that replace them at the same time one waits for the other.
func (i Issued) Write(certPath, keyPath string, replace bool) (err error) {
	if replace {
		lock, err := lockPair(keyPath)
		if err != nil {
			return err
		}
		defer lock.Close()
	} else {
		for _, path := range []string{certPath, keyPath} {
			if _, err := os.Lstat(path); err == nil {
				return &os.PathError{Op: "write", Path: path, Err: os.ErrExist}
			}
		}
	}
	key, err := outfile.Prepare(keyPath, i.Key, 0o600)
	if err != nil {
		return err
	}
	if err := keepReaders(keyPath, key); err != nil {
		return errors.Join(err, os.Remove(key))
	}
	cert, err := outfile.Prepare(certPath, i.Cert, 0o644)
	if err != nil {
		return errors.Join(err, os.Remove(key))
	}
	if err := os.Rename(key, keyPath); err != nil {
		return errors.Join(err, os.Remove(key), os.Remove(cert))
	}
	if err := os.Rename(cert, certPath); err != nil {
		return errors.Join(err, os.Remove(cert))
	}
	return nil
}

// lockPair keeps others from replacing a key with its certificate until the lock is
// closed. It is of a file of its own, which stays: nobody but its owner can open that, so
// nobody else can have it locked, as they could a directory that they may read.
func lockPair(keyPath string) (io.Closer, error) {
	path := filepath.Join(filepath.Dir(keyPath), "."+filepath.Base(keyPath)+".lock")
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(file.Fd()), unix.LOCK_EX); err != nil {
		return nil, errors.Join(&os.PathError{Op: "lock", Path: path, Err: err}, file.Close())
	}
	return file, nil
}

// keepReaders lets the group that may read a key of root's read its successor.
func keepReaders(old, successor string) error {
	var st unix.Stat_t
	err := unix.Stat(old, &st)
	switch {
	case errors.Is(err, unix.ENOENT):
		return nil
	case err != nil:
		return &os.PathError{Op: "stat", Path: old, Err: err}
	case st.Uid != 0 || suited(old, &st, private, os.Geteuid()) != nil || st.Mode&0o040 == 0:
		return nil
	}
	if err := os.Chown(successor, -1, int(st.Gid)); err != nil {
		return err
	}
	return os.Chmod(successor, 0o640)
}

// WriteRoots writes the root's certificate where those who got one from it look for
// it.
func (a *Authority) WriteRoots(path string) error {
	return outfile.PutDurably(path, encodeCertificates(a.root()), 0o644)
}

// NodeFiles are the certificate of this machine, as its node's service has it.
func NodeFiles() Files { return FilesIn(Directory, "node") }

// AnalyzerFiles are the certificate of an Analyzer on this machine.
func AnalyzerFiles() Files { return FilesIn(Directory, "analyzer") }

// UserFiles are the certificate of a user, in the directory of their
// configuration ($XDG_CONFIG_HOME/attune or ~/.config/attune).
func UserFiles(dir string) Files { return FilesIn(dir, "user") }
