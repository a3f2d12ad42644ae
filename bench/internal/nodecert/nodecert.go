// SPDX-License-Identifier: Apache-2.0

// Package nodecert makes the certificates by which the parts of a benchmark talk
// as those of a site do.
package nodecert

import (
	"errors"
	"os"
	"time"

	"github.com/attune-hpc/attune/internal/pki"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// valid is longer than any benchmark.
const valid = 2 * time.Hour

// New makes a CA, and a certificate of role node that is good at 127.0.0.1, as
// the files of a node in a directory that is there.
func New(dir string) (*pki.Identity, pki.Files, error) {
	files := pki.FilesIn(dir, "node")
	authority, err := pki.NewAuthority("bench", valid)
	if err != nil {
		return nil, files, err
	}
	ca, err := authority.PEM()
	if err != nil {
		return nil, files, err
	}
	issued, err := authority.Issue(pki.Request{Name: "node", Role: attunev1.Role_ROLE_NODE, Hosts: []string{"127.0.0.1"}, Valid: valid / 2})
	if err != nil {
		return nil, files, err
	}
	const mode = 0o600
	err = errors.Join(os.WriteFile(files.CA, ca.Cert, mode), os.WriteFile(files.Cert, issued.Cert, mode), os.WriteFile(files.Key, issued.Key, mode))
	if err != nil {
		return nil, files, err
	}
	identity, err := pki.Open(files, nil)
	return identity, files, err
}
