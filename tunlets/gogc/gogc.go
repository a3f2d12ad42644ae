// SPDX-License-Identifier: Apache-2.0

// Package gogc is the tunlet for Go programs whose collector takes much of their CPU
// time. All of it is in go-gc.tunlet.yaml; docs/tunlets/go-gc.md has the reasons.
package gogc

import (
	_ "embed"

	"github.com/attune-hpc/attune/tunlets/declarative"
	"github.com/attune-hpc/attune/tunlets/sdk"
)

// Name of the tunlet.
const Name = "go-gc"

//go:embed go-gc.tunlet.yaml
var file []byte

// New makes the tunlet.
func New() sdk.Tunlet { return declarative.Must(file).New() }
