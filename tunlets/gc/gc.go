// SPDX-License-Identifier: Apache-2.0

// Package gc is the tunlet for programs that spend much time on looking for garbage. All
// of it is in gc.tunlet.yaml; docs/tunlets/gc.md has the reasons.
package gc

import (
	_ "embed"

	"github.com/attune-hpc/attune/tunlets/declarative"
	"github.com/attune-hpc/attune/tunlets/sdk"
)

// Name of the tunlet.
const Name = "gc"

//go:embed gc.tunlet.yaml
var file []byte

// New makes the tunlet.
func New() sdk.Tunlet { return declarative.Must(file).New() }
