// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"os"

	"github.com/attune-hpc/attune/controller/child"
	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/readers"
	"github.com/attune-hpc/attune/internal/rundir"
)

// serveSession is the process of a session, which attuned has started.
func serveSession(stderr io.Writer) int {
	o := child.ServeOptions{Digests: digests(), Hidden: prober(), Readers: readers.New(readers.Options{})}
	// Where attune undo looks, whatever the node's name is. Without it no change stays
	// after its session.
	if dir, err := rundir.Current().LastingStateDir(); err == nil {
		if host, err := os.Hostname(); err == nil {
			o.KeptDir, o.KeptHost = dir, host
		}
	}
	defer o.Readers.Close()
	return child.Serve(o, stderr)
}

// digests remembers checksums of programs, for all processes of attuned.
func digests() *objfile.Digests {
	return objfile.NewDigests(rundir.Current().DigestDir())
}
