// SPDX-License-Identifier: Apache-2.0

package capability

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/attune-hpc/attune/internal/confine"
)

// node is what the probes of one call share.
type node struct {
	root    string
	library string
	held    confine.Capabilities
	own     *child
}

func newNode(opts Options) *node {
	held, _ := confine.Effective() // none where the kernel does not say
	return &node{root: opts.root, library: opts.Library, held: held}
}

// close ends the child, if there is one.
func (n *node) close() {
	if n.own != nil {
		n.own.end()
	}
}

// child starts one at the first call; all probes use the same.
func (n *node) child() (*child, error) {
	if n.own == nil {
		own, err := startChild()
		if err != nil {
			return nil, err
		}
		n.own = own
	}
	return n.own, nil
}

func (n *node) path(name string) string {
	if n.root == "" {
		return name
	}
	return filepath.Join(n.root, name)
}

// read returns a file's text without white space at its ends.
func (n *node) read(name string) (string, error) {
	raw, err := os.ReadFile(n.path(name))
	return strings.TrimSpace(string(raw)), err
}
