// SPDX-License-Identifier: Apache-2.0

// Package stdio is the tunlet for programs that write in many small pieces. All
// of it is in stdio.tunlet.yaml; docs/tunlets/stdio.md has the reasons.
package stdio

import (
	_ "embed"

	"github.com/attune-hpc/attune/tunlets/declarative"
	"github.com/attune-hpc/attune/tunlets/sdk"
)

// Name of the tunlet.
const Name = "stdio"

//go:embed stdio.tunlet.yaml
var file []byte

// New makes the tunlet.
func New() sdk.Tunlet { return declarative.Must(file).New() }
