// SPDX-License-Identifier: Apache-2.0

// Package pipe is the tunlet for pipelines that spend their time on waking each
// other. All of it is in pipe.tunlet.yaml; docs/tunlets/pipe.md has the reasons.
package pipe

import (
	_ "embed"

	"github.com/attune-hpc/attune/tunlets/declarative"
	"github.com/attune-hpc/attune/tunlets/sdk"
)

// Name of the tunlet.
const Name = "pipe"

//go:embed pipe.tunlet.yaml
var file []byte

// New makes the tunlet.
func New() sdk.Tunlet { return declarative.Must(file).New() }
