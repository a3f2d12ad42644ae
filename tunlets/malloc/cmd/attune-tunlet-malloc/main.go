// SPDX-License-Identifier: Apache-2.0

// Command attune-tunlet-malloc is the tunlet against allocator storms. The
// Analyzer starts it.
package main

import (
	"github.com/attune-hpc/attune/tunlets/malloc"
	"github.com/attune-hpc/attune/tunlets/sdk"
)

func main() { sdk.Serve(malloc.New) }
