// SPDX-License-Identifier: Apache-2.0

// Command attune-tunlet-idle is a tunlet that has nothing to do, of whatever name
// it is called by: attune-tunlet-asleep-1 waits for what never comes, any other
// one is started at once and wants no samples.
package main

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/attune-hpc/attune/tunlets/sdk"
)

func main() { sdk.Serve(func() sdk.Tunlet { return tunlet{} }) }

type tunlet struct{}

// Describe implements sdk.Tunlet.
func (tunlet) Describe() sdk.Description {
	d := sdk.Description{
		Name: strings.TrimPrefix(filepath.Base(os.Args[0]), "attune-tunlet-"), Version: "1", Summary: "has nothing to do",
	}
	if strings.HasPrefix(d.Name, "asleep-") {
		const never = 1e15
		d.Wake = []sdk.Wake{
			{Levels: []sdk.Level{{Signal: sdk.MinorFaults, AtLeast: never}, {Signal: sdk.Threads, AtLeast: 2}}},
			{Object: "libnowhere.so*", Levels: []sdk.Level{{Signal: sdk.RunTime, AtLeast: 1}}},
		}
	}
	return d
}

// ProcessStarted implements sdk.ProcessStartObserver.
func (tunlet) ProcessStarted(h *sdk.Host, p sdk.Process) { h.Want(p.Handle, sdk.NoSamples()) }
