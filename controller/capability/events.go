// SPDX-License-Identifier: Apache-2.0

package capability

import (
	"context"
	"fmt"
	"os"
	"os/exec"

	"github.com/attune-hpc/attune/controller/bpf"
	"github.com/attune-hpc/attune/controller/bpf/procevent"
	"github.com/attune-hpc/attune/controller/track"
)

// execEventsLikely asks for the privilege and the kernel's types only.
func execEventsLikely(_ context.Context, n *node) finding {
	if !bpf.MayLoad(n.held) {
		return unavailable(notPermitted, remedyBPF)
	}
	if f := kernelTypes(n); f.state != Available {
		return f
	}
	if n.isConfidential() {
		return unavailable(confidential, remedyConfidential)
	}
	return available("not tried")
}

// execEventsTried follows a program from its birth to its end.
func execEventsTried(ctx context.Context, _ *node) finding {
	events, err := procevent.New(procevent.Options{MaxProcesses: 64})
	if err != nil {
		return refused(err, remedyBPF, kernelFrom("5.15")+", with CONFIG_DEBUG_INFO_BTF")
	}
	seen, err := followTrue(ctx, events)
	if closing := events.Close(); err == nil {
		err = closing
	}
	if err != nil {
		return refused(err, remedyBPF, kernelFrom("5.15"))
	}
	for _, kind := range []procevent.EventKind{procevent.EventFork, procevent.EventExec, procevent.EventExit} {
		if seen[kind] != 1 {
			return unavailable(fmt.Sprintf("one short program caused %d %v events", seen[kind], kind), "")
		}
	}
	// attuned goes on without these.
	accounts, err := procevent.New(procevent.Options{MaxProcesses: 64, NodeWide: true, Accounts: true})
	if err == nil {
		err = accounts.Close()
	}
	if err != nil {
		f := refused(err, remedyBPF, "")
		return degraded("tried, without accounts of what processes take", f.reason, f.remedy)
	}
	return available("tried")
}

func followTrue(ctx context.Context, events *procevent.ProcessEvents) (map[procevent.EventKind]int, error) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	if err := events.Add(os.Getpid()); err != nil { // its child becomes a member
		return nil, err
	}
	command := exec.CommandContext(ctx, "true")
	if err := command.Run(); err != nil {
		return nil, err
	}
	cancel() // Run hands over what happened, then ends
	seen := make(map[procevent.EventKind]int)
	err := events.Run(ctx, func(event procevent.Event) {
		if event.PID == command.Process.Pid {
			seen[event.Kind]++
		}
	})
	return seen, err
}

// processConnector subscribes and unsubscribes.
func processConnector(context.Context, *node) finding {
	connector, err := track.NewConnector()
	if err != nil {
		return refused(err, "run as root, or with CAP_NET_ADMIN: before Linux 6.6 others may not listen",
			"needs a kernel with CONFIG_PROC_EVENTS, and the initial pid namespace")
	}
	if err := connector.Close(); err != nil {
		return refused(err, "", "")
	}
	return available("tried")
}
