// SPDX-License-Identifier: Apache-2.0

//go:build site && full

package e2e

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protojson"

	"github.com/attune-hpc/attune/internal/testing/cluster"
	"github.com/attune-hpc/attune/internal/testing/patience"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
	"github.com/attune-hpc/attune/tunlets/sdk"
)

// headAway is for how long the node of the Analyzer and the registry is away.
const headAway = 2 * time.Minute

// badJob allocates and touches memory until a file is there, and writes how often, each second.
const badJob = `import os, random, sys, time
host, end = os.uname().nodename, sys.argv[1]
random.seed(1)
while not os.path.exists(end):
    steps, until = 0, time.monotonic() + 1
    while time.monotonic() < until:
        blocks = [b'x' * random.randrange(1 << 18, 1 << 23) for _ in range(16)]
        steps += 1
    print(host, steps, flush=True)
`

// badDay is a job of two nodes, on one of which Attune is not, on a day on which much goes wrong.
type badDay struct {
	t      *testing.T
	c      *cluster.Cluster
	folder string
}

// on runs a command as root on a node and returns what it printed.
func (d *badDay) on(node, command string) string {
	d.t.Helper()
	out, err := d.c.Run(patience.Context(d.t), "", node, "bash", "-c", command)
	if err != nil {
		d.t.Fatal(err)
	}
	return out
}

// session returns that of the job's program; nil: nobody knows any.
func (d *badDay) session() *attunev1.SessionRecord {
	d.t.Helper()
	out, err := d.c.Run(d.t.Context(), "", cluster.Login, "/srv/bin/attune", "session", "list", "--json")
	if err != nil {
		return nil
	}
	listed := new(attunev1.ListSessionsResponse)
	if err := protojson.Unmarshal([]byte(out), listed); err != nil {
		d.t.Fatalf("%v: %s", err, out)
	}
	for _, one := range listed.GetSessions() {
		if slices.Contains(one.GetCommandLine(), "program.py") {
			return one
		}
	}
	return nil
}

// keptIDs are the ids of the session's kept changes.
func keptIDs(s *attunev1.SessionRecord) (ids []string) {
	for _, change := range s.GetKeptChanges() {
		ids = append(ids, change.GetId())
	}
	slices.Sort(ids)
	return ids
}

// rates are what the job has written by now on a node. There is nothing else.
func (d *badDay) rates(node string) (rates []float64) {
	d.t.Helper()
	out := d.on(cluster.Login, "cat /home/alice/out")
	for line := range strings.Lines(out) {
		found := regexp.MustCompile(`^node[12] ([0-9]+)\n$`).FindStringSubmatch(line)
		if found == nil {
			d.t.Fatalf("the job's output has a line of somebody else's: %q", line)
		}
		if rate, _ := strconv.ParseFloat(found[1], 64); strings.HasPrefix(line, node) {
			rates = append(rates, rate)
		}
	}
	return rates
}

// wantSame checks that a session is the one that it was, with the same changes in force.
func (d *badDay) wantSame(after string, before *attunev1.SessionRecord) {
	d.t.Helper()
	defer func() {
		if d.t.Failed() {
			d.t.Logf("kept before: %v; the node has done:\n%s", before, d.on("node1", "grep -v 'measure point' /srv/log/attuned.node1"))
		}
	}()
	patience.Until(d.t, "the session to be known "+after, func() bool {
		now := d.session()
		return now.GetId() == before.GetId() && now.GetRunning() == before.GetRunning() && slices.Equal(keptIDs(now), keptIDs(before))
	})
	if undone := d.on("node1", "grep -E 'undone=true|undone at the end|undone after its lease' /srv/log/attuned.node1 || :"); undone != "" {
		d.t.Errorf("%s: %s", after, undone)
	}
}

// connections counts how often a node has come to an Analyzer with the job's processes.
func (d *badDay) connections() int {
	d.t.Helper()
	return strings.Count(d.on("node1", "cat /srv/log/attuned.node1"), "connected to the analyzer\" session=1")
}

// connected waits for the node to have come to an Analyzer more often than it had.
func (d *badDay) connected(before int) {
	d.t.Helper()
	patience.Until(d.t, "the node to be at an analyzer again", func() bool { return d.connections() > before })
}

// breakPolicy has the node read a policy that is none, and then the old one again.
func (d *badDay) breakPolicy(before *attunev1.SessionRecord) {
	d.t.Helper()
	d.on("node1", "cp /etc/attune/policy.yaml /srv/policy; echo 'service: [{mode: tunes}]' >/etc/attune/policy.yaml; pkill -HUP -o -x attuned")
	patience.Until(d.t, "the policy to be refused", func() bool {
		return strings.Contains(d.on("node1", "cat /srv/log/attuned.node1"), "the last good policy stays in force")
	})
	d.wantSame("with a broken policy", before)
	d.on("node1", "cp /srv/policy /etc/attune/policy.yaml; pkill -HUP -o -x attuned")
}

// renewAndUpgrade gives the node another certificate, and has another attuned follow.
func (d *badDay) renewAndUpgrade(before *attunev1.SessionRecord) {
	d.t.Helper()
	connections := d.connections()
	d.on(cluster.Login, "cd /srv/pki && /srv/bin/attune cert issue --ca ca --role node --replace node1")
	d.on("node1", "cp /srv/pki/node1/* /etc/attune/pki/")
	d.on("node1", "pkill -USR1 -o -x attuned; pkill -TERM -o -x attuned; while pgrep -o -x attuned; do sleep 0.1; done;"+
		" /srv/bin/attuned >>/srv/log/attuned.node1 2>&1 </dev/null &")
	d.connected(connections)
	d.wantSame("with another attuned and another certificate", before)
}

// loseHead takes the Analyzer and the registry away for a while.
func (d *badDay) loseHead(before *attunev1.SessionRecord) {
	d.t.Helper()
	d.on(cluster.Login, "pkill -KILL -f 'attune analyzer serve'")
	time.Sleep(headAway)
	connections := d.connections()
	d.on(cluster.Login, "setpriv --reuid=attune --regid=attune --init-groups env HOME=/var/lib/attune/analyzer"+
		" /srv/bin/attune analyzer serve >>/srv/log/analyzer 2>&1 </dev/null &")
	d.connected(connections)
	d.wantSame("after the head node was away", before)
}

// A job runs through a policy that cannot be read, a certificate that is renewed, an upgrade
// of its node's service, and two minutes without a head node. One of its nodes has no Attune
// at all. It sees no line of that, and what was gained stays.
func TestBadDay(t *testing.T) {
	d := &badDay{t: t, folder: mustShare(t)}
	setup, err := cluster.Site{}.Setup("../../..", d.folder)
	if err != nil {
		t.Fatal(err)
	}
	d.c = mustCluster(t, d.folder, setup)
	defer func() {
		if t.Failed() {
			t.Logf("session %v\n%s", d.session(), d.c.Logs(t.Context()))
		}
	}()
	d.on("node2", "pkill -TERM -x attuned; while pgrep -x attuned; do sleep 0.1; done; rm -rf /run/attune /etc/attune/*")
	end := filepath.Join(d.folder, "end")
	ended := make(chan error, 1)
	go func() {
		script := fmt.Sprintf("cat >program.py <<'END'\n%sEND\nexport %s\nsrun -N2 python3 program.py %s", badJob, mapped, end)
		_, err := d.c.Submit(t.Context(), cluster.Alice, "-N2", script)
		ended <- err
	}()
	var before *attunev1.SessionRecord
	patience.Until(t, "the job to be tuned", func() bool {
		before = d.session()
		return len(keptIDs(before)) > 0
	})
	tuned := len(d.rates("node1"))

	d.breakPolicy(before)
	d.renewAndUpgrade(before)
	quiet := len(d.rates("node1"))
	d.loseHead(before)

	d.on(cluster.Login, "touch "+end)
	if err := patience.Receive(t, "the job to end", ended); err != nil {
		t.Errorf("the job failed: %v", err)
	}
	all := d.rates("node1")
	plain, calm, away := sdk.Median(all[:min(3, tuned)]), sdk.Median(all[tuned:quiet]), sdk.Median(all[quiet:])
	t.Logf("steps per second: %v at first, %v when it was tuned, %v without a head node", plain, calm, away)
	if away-plain < (calm-plain)/2 {
		t.Errorf("the gain is gone without a head node: steps per second %v at first, %v when it was tuned, %v from then on", plain, calm, away)
	}
}
