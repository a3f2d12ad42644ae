// SPDX-License-Identifier: Apache-2.0

// Package sitecert makes the certificates by which the parts of a benchmark talk
// as those of a site do.
package sitecert

import (
	"errors"
	"os"
	"time"

	"github.com/attune-hpc/attune/internal/pki"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

const (
	// valid is longer than any benchmark.
	valid = 2 * time.Hour
	mode  = 0o600
)

// Site is a CA with a directory that is there, where its certificates lie.
type Site struct {
	dir       string
	authority *pki.Authority
}

// New makes a CA.
func New(dir string) (*Site, error) {
	authority, err := pki.NewAuthority("bench", valid)
	if err != nil {
		return nil, err
	}
	ca, err := authority.PEM()
	if err != nil {
		return nil, err
	}
	return &Site{dir, authority}, os.WriteFile(pki.FilesIn(dir, "").CA, ca.Cert, mode)
}

// Issue makes a certificate that is good at 127.0.0.1, and opens it.
func (s *Site) Issue(name string, role attunev1.Role) (*pki.Identity, pki.Files, error) {
	files := pki.FilesIn(s.dir, name)
	issued, err := s.authority.Issue(pki.Request{Name: name, Role: role, Hosts: []string{"127.0.0.1"}, Valid: valid / 2})
	if err != nil {
		return nil, files, err
	}
	err = errors.Join(os.WriteFile(files.Cert, issued.Cert, mode), os.WriteFile(files.Key, issued.Key, mode))
	if err != nil {
		return nil, files, err
	}
	identity, err := pki.Open(files, nil)
	return identity, files, err
}
