// SPDX-License-Identifier: Apache-2.0

//go:build privileged

package main

import (
	"net/http"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/metrics"
	"github.com/attune-hpc/attune/internal/testing/patience"
	"github.com/attune-hpc/attune/internal/testing/scraped"
	"github.com/attune-hpc/attune/internal/testing/targets"
)

// TestMetrics: attuned, with the rights of its unit, has all that the reference page lists,
// at its socket, over TCP and in a file; it counts who is taken and what is changed, and
// tells that its policy is broken.
func TestMetrics(t *testing.T) {
	s := mustSiteOnly(t)
	a := &scripted{}
	serveScript(t, a, s.path("a.sock"))
	program := s.worker("worker")
	target := targets.Start(t, program)
	s.register("r1", program, "tune")
	c := a.reset()
	address, file := scraped.FreePort(t), s.path("state/attuned.prom")
	daemon := s.attuned("--metrics-listen", address, "--metrics-file", file)
	process := patience.Receive(t, "the process", c.processes)
	c.requests <- setKnob("c1", process.GetHandle())
	checkChanged(t, c, target)
	has := func(lines ...string) {
		t.Helper()
		for _, line := range lines {
			patience.Until(t, line, func() bool { _, text := s.get("/metrics"); return strings.Contains(text, "\n"+line+"\n") })
		}
	}
	has("attune_node_sessions 1", "attune_node_processes 1", "attune_node_policy_ok 1", `attune_node_changes_total{result="applied"} 1`)
	patience.Until(t, "connections of the session", func() bool {
		_, text := s.get("/metrics")
		return !strings.Contains(text, "\nattune_node_connections 0\n")
	})
	_, text := s.get("/metrics")
	scraped.CheckWhole(t, metrics.Node, strings.Split(text, "\n"))
	scraped.CheckWhole(t, metrics.Node, scraped.Lines(t, http.DefaultClient, "http://"+address+"/metrics"))
	scraped.CheckWhole(t, metrics.Node, scraped.File(t, file))

	for _, policy := range []struct{ text, ok string }{{"service: [\n", "0"}, {"service: [{mode: none}]\n", "1"}} {
		s.write("policy.yaml", policy.text)
		if err := daemon.Process.Signal(unix.SIGHUP); err != nil {
			t.Fatal(err)
		}
		has("attune_node_policy_ok " + policy.ok)
	}
	late := targets.Start(t, program)
	has(`attune_node_processes_refused_total{reason="policy"} 1`)
	s.stop(daemon)
	checkUnharmed(t, target)
	checkUnharmed(t, late)
}
