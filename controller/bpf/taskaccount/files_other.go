// SPDX-License-Identifier: Apache-2.0

//go:build !amd64

package taskaccount

import "github.com/attune-hpc/attune/controller/bpf"

// Files knows what the trees of an Accounts read and wrote of each file.
type Files struct{}

// NewFiles fails with a *bpf.UnsupportedError: system calls are known by their numbers
// on x86-64 only.
func (a *Accounts) NewFiles() (*Files, error) {
	return nil, &bpf.UnsupportedError{Feature: "bytes by file and network", Reason: "not on this architecture", Remedy: "needs x86-64"}
}

// Read is never called: there is no Files.
func (f *Files) Read() error { return nil }

// List is never called: there is no Files.
func (f *Files) List() ([]File, FileTotals, error) { return nil, FileTotals{}, nil }

// Close is never called: there is no Files.
func (f *Files) Close() error { return nil }
