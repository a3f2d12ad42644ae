// SPDX-License-Identifier: Apache-2.0

// Package convoy is the tunlet for Python threads that wait for each other. All
// of it is in convoy.tunlet.yaml; docs/tunlets/convoy.md has the reasons.
package convoy

import (
	_ "embed"

	"github.com/attune-hpc/attune/tunlets/declarative"
	"github.com/attune-hpc/attune/tunlets/sdk"
)

// Name of the tunlet.
const Name = "convoy"

//go:embed convoy.tunlet.yaml
var file []byte

// New makes the tunlet.
func New() sdk.Tunlet { return declarative.Must(file).New() }
