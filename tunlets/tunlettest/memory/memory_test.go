// SPDX-License-Identifier: Apache-2.0

// Package memory tests how much of it tunlets take.
package memory

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	hclog "github.com/hashicorp/go-hclog"
	plugin "github.com/hashicorp/go-plugin"

	"github.com/attune-hpc/attune/proto/attune/series"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
	"github.com/attune-hpc/attune/tunlets/catalogue"
	"github.com/attune-hpc/attune/tunlets/sdk"
)

const (
	// ownLimit is what a tunlet may take for itself, bytes: beyond the pages of
	// its program, which all tunlets share.
	ownLimit = 16 << 20
	// processes is how many processes a session has in the test.
	processes = 64
	// rounds is how often everything is delivered.
	rounds = 100
)

// TestResident runs the real program, as each tunlet, under a session of 64
// processes, and looks at its memory and CPU time.
func TestResident(t *testing.T) {
	dir := t.TempDir()
	binary := filepath.Join(dir, sdk.PackageProgram)
	build := exec.Command("go", "build", "-o", binary, "../../catalogue/cmd/attune-tunlets")
	build.Env = append(os.Environ(), "CGO_ENABLED=0") // as make build does
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	if err := catalogue.Link(dir); err != nil {
		t.Fatal(err)
	}
	for _, name := range catalogue.Names() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client, tunlet := serve(t, filepath.Join(dir, sdk.ProgramPrefix+name))
			pid := client.ReattachConfig().Pid
			idle := resident(t, pid, "VmHWM")
			deliver(t, tunlet)
			peak, program := resident(t, pid, "VmHWM"), resident(t, pid, "RssFile")
			t.Logf("resident: started %.1f MB, peak %.1f MB, of it %.1f MB pages of the program; CPU %v for %d rounds of %d processes",
				float64(idle)/1e6, float64(peak)/1e6, float64(program)/1e6, cpu(t, pid), rounds, processes)
			if own := peak - program; own > ownLimit {
				t.Errorf("peak resident memory of its own %d bytes, want %d at most", own, ownLimit)
			}
		})
	}
}

func serve(t *testing.T, binary string) (*plugin.Client, attunev1.TunletServiceClient) {
	t.Helper()
	client := plugin.NewClient(&plugin.ClientConfig{
		HandshakeConfig: sdk.Handshake, Plugins: plugin.PluginSet{sdk.PluginName: &sdk.GRPCPlugin{}},
		Cmd: exec.Command(binary), AllowedProtocols: []plugin.Protocol{plugin.ProtocolGRPC}, AutoMTLS: true,
		Logger: hclog.NewNullLogger(),
	})
	t.Cleanup(client.Kill)
	protocol, err := client.Client()
	if err != nil {
		t.Fatal(err)
	}
	raw, err := protocol.Dispense(sdk.PluginName)
	if err != nil {
		t.Fatal(err)
	}
	return client, raw.(attunev1.TunletServiceClient)
}

// deliver sends what a session of many processes in trouble sends.
func deliver(t *testing.T, tunlet attunev1.TunletServiceClient) {
	t.Helper()
	ctx := t.Context()
	now := time.Unix(1000, 0)
	if _, err := tunlet.Describe(ctx, &attunev1.DescribeRequest{ApiVersions: []string{sdk.APIVersion}}); err != nil {
		t.Fatal(err)
	}
	_, _ = tunlet.ApplicationStarted(ctx, &attunev1.ApplicationStartedRequest{UnixNano: now.UnixNano()}) // not every tunlet cares
	for p := range uint64(processes) {
		if _, err := tunlet.ProcessStarted(ctx, &attunev1.ProcessStartedRequest{Process: &attunev1.Process{
			Handle: p + 1, Host: "node1", CpusAllowed: 2, Objects: []string{"/usr/lib/libmpi.so.40", "/usr/lib/libopen-pal.so.40"},
		}}); err != nil {
			t.Fatal(err)
		}
	}
	for round := range rounds {
		now = now.Add(50 * time.Millisecond)
		if _, err := tunlet.HandleEvents(ctx, batch(now, float64(round))); err != nil {
			t.Fatal(err)
		}
	}
}

// batch has all signals, and 14 points, of every process.
func batch(now time.Time, round float64) *attunev1.HandleEventsRequest {
	out := &attunev1.HandleEventsRequest{
		FromUnixNano: now.Add(-50 * time.Millisecond).UnixNano(), ToUnixNano: now.UnixNano(),
		Samples: &attunev1.SampleBatch{UnixNano: now.UnixNano()},
	}
	for p := range uint64(processes) {
		var readings []series.Reading
		for sig := series.CPUUser; sig <= series.InvoluntarySwitches; sig++ {
			readings = append(readings, series.Reading{ID: sig, Value: uint64(round * 2.5e7)})
		}
		out.Samples.Samples = append(out.Samples.Samples, &attunev1.Sample{Process: p + 1, Tables: []*attunev1.Table{series.SignalTable(readings...)}})
		for point := range uint32(14) {
			out.Aggregates = append(out.Aggregates, &attunev1.NamedAggregate{PointId: "mpi0@1", Aggregate: &attunev1.Aggregate{
				Point: point, Process: p + 1, Count: 10, Sum: 10 << 20, Histogram: make([]uint64, 21),
			}})
		}
	}
	return out
}

// resident reads a line of /proc/PID/status, in bytes.
func resident(t *testing.T, pid int, field string) int {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "status"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		if rest, ok := strings.CutPrefix(line, field+":"); ok {
			kib, err := strconv.Atoi(strings.Fields(rest)[0])
			if err != nil {
				t.Fatal(err)
			}
			return kib << 10
		}
	}
	t.Fatalf("no %s in the status of process %d", field, pid)
	return 0
}

// cpu is a process' CPU time, in clock ticks of 10 ms.
func cpu(t *testing.T, pid int) time.Duration {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.Fields(string(data[strings.LastIndexByte(string(data), ')'):]))
	user, errUser := strconv.Atoi(fields[12])
	system, errSystem := strconv.Atoi(fields[13])
	if errUser != nil || errSystem != nil {
		t.Fatalf("stat of process %d: %v %v", pid, errUser, errSystem)
	}
	return time.Duration(user+system) * 10 * time.Millisecond
}
