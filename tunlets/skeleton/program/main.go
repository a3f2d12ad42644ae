// SPDX-License-Identifier: Apache-2.0

// Command attune-tunlet-small-writes is a tunlet of Attune: it makes a program
// that writes little at a time write more at once. Attune starts it by itself:
//
//	go build -o attune-tunlet-small-writes .
//	attune tunlet test ./attune-tunlet-small-writes
//	attune run --tunlet-dir . --tunlet small-writes -- ./program
//	attune tunlet install ./attune-tunlet-small-writes
//
// model.go is the knowledge, free of state; tunlet.go connects it to the Dynamic Tunlet
// API (tunlets/sdk).
package main

import "github.com/attune-hpc/attune/tunlets/sdk"

func main() { sdk.Serve(newTunlet) }
