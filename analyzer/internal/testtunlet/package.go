// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"time"

	"github.com/attune-hpc/attune/tunlets/sdk"
)

// packageProgram is the name by which this program is a package of tunlets, which it
// serves in one process.
const packageProgram = "attune-tunlets"

// member is a tunlet of the package: at a tick it does what the first word of its
// application's command line says, and makes the file that the second word names.
//
//	panic    panics
//	lose     panics in a goroutine of its own, which ends the process
//	hang     does not return
//	spin     does not return, and takes all CPU time that it gets
//	         anything else tells the number of ticks so far, as a remark
type member struct {
	command, file string
	ticks         int
}

// servePackage serves two tunlets that differ in name only.
func servePackage() {
	tunlets := map[string]func() sdk.Tunlet{}
	for _, name := range []string{"one", "two"} {
		tunlets[name] = func() sdk.Tunlet { return &named{name: name} }
	}
	sdk.ServePackage(tunlets)
}

type named struct {
	member
	name string
}

func (n *named) Describe() sdk.Description { return sdk.Description{Name: n.name, Version: "1"} }

func (m *member) ApplicationStarted(_ *sdk.Host, app sdk.Application) {
	m.command = app.Command[0]
	if len(app.Command) > 1 {
		m.file = app.Command[1]
	}
}

func (m *member) Tick(h *sdk.Host) {
	m.ticks++
	if m.file != "" {
		_ = os.WriteFile(m.file, nil, 0o600)
	}
	switch m.command {
	case "panic":
		panic("no licence found")
	case "lose":
		go func() { panic("nobody recovers from this") }()
		time.Sleep(time.Hour)
	case "hang":
		time.Sleep(time.Hour)
	case "spin":
		for { // without a system call, in which Go could not interrupt it
			m.ticks++
		}
	}
	h.Remark(0, "tick %d", m.ticks)
}
