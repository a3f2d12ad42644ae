// SPDX-License-Identifier: Apache-2.0

package sdk_test

import (
	"fmt"
	"time"

	"github.com/attune-hpc/attune/tunlets/sdk"
)

// buffers is a tunlet that makes the buffer of a program larger whose writes are small.
type buffers struct {
	options bufferOptions
	rounds  map[sdk.Handle]int // of aggregates, by process
}

func newBuffers() *buffers { return &buffers{rounds: map[sdk.Handle]int{}} }

type bufferOptions struct {
	Buffer uint64        `option:"buffer" default:"64KiB" min:"4KiB" doc:"how large the buffer becomes"`
	Look   time.Duration `option:"look" default:"1s" doc:"over how long it counts"`
}

func (t *buffers) Describe() sdk.Description {
	return sdk.Description{
		Name: "buffers", Version: "1", Summary: "many small writes where one would do",
		Objective: sdk.Objective{Name: "writes", Unit: "1/s", Description: "calls of write, each of one line"},
		Wake:      []sdk.Wake{{Levels: []sdk.Level{{Signal: sdk.WriteCalls, AtLeast: 5000}}, Lasting: time.Second}},
		Knobs:     []sdk.Knob{{Name: "buffer", Description: "bytes gathered", Action: sdk.SetVariable("*", "buffer_size", 8, sdk.Value{})}},
		Options:   sdk.OptionsOf[bufferOptions](),
	}
}

func (t *buffers) Configure(given map[string]string) (err error) {
	t.options, err = sdk.ReadOptions[bufferOptions](given)
	return err
}

func (t *buffers) ProcessStarted(h *sdk.Host, p sdk.Process) {
	h.AddPoint(sdk.Point{ID: fmt.Sprint("writes@", p.Handle), Hook: "write", Processes: []sdk.Handle{p.Handle}})
}

func (t *buffers) HandleAggregates(h *sdk.Host, a sdk.Aggregates) {
	for _, writes := range a.Items {
		scope := fmt.Sprint(writes.Process)
		h.Objective(scope, float64(writes.Count)/a.Seconds())
		// The change is compared with what was reported before it.
		if t.rounds[writes.Process]++; t.rounds[writes.Process] == 10 && writes.Mean() < 512 {
			h.Propose(sdk.Proposal{
				ID: "buffer@" + scope, Scope: scope, Reason: fmt.Sprintf("writes of %.0f bytes", writes.Mean()),
				Changes: []sdk.Change{{Knob: "buffer", Process: writes.Process, Action: sdk.SetVariable("*", "buffer_size", 8, sdk.Uint(t.options.Buffer))}},
			})
		}
	}
}

// A tunlet describes itself, and implements an interface for each thing that it wants to
// hear. Its program is: func main() { sdk.Serve(func() sdk.Tunlet { return newBuffers() }) }
func Example() {
	var tunlet sdk.Tunlet = newBuffers()
	d := tunlet.Describe()
	fmt.Printf("%s: %s\n", d.Name, d.Summary)
	for _, o := range d.Options {
		fmt.Printf("%s, %s, else %s: %s\n", o.Name, o.Type, o.Default, o.Description)
	}
	// Output:
	// buffers: many small writes where one would do
	// buffer, bytes, else 64KiB: how large the buffer becomes
	// look, duration, else 1s: over how long it counts
}

func ExampleReadOptions() {
	options, err := sdk.ReadOptions[bufferOptions](map[string]string{"buffer": "1MiB", "look": "250ms"})
	fmt.Println(options.Buffer, options.Look, err)
	// Output: 1048576 250ms <nil>
}

// A window gives the rates of counters.
func ExampleWindow() {
	begin := time.Unix(1000, 0)
	window := sdk.NewWindow(time.Second)
	for i := range 5 {
		at := begin.Add(time.Duration(i) * 500 * time.Millisecond)
		window.Add(sdk.Sample{Process: 1, At: at}.With(sdk.WriteCalls, float64(1000*i)))
	}
	latest := window.Latest(time.Second)
	rate, ok := latest.Rate(sdk.WriteCalls)
	fmt.Println(latest.Duration(), rate, ok)
	// Output: 1s 2000 true
}

// What part of the time is spent in long calls is told by the histogram of a point that
// takes durations.
func ExampleAggregate_ShareFrom() {
	long := uint64(time.Millisecond)
	a := sdk.Aggregate{Count: 1000, Histogram: make([]uint64, 25)}
	a.Histogram[11], a.Histogram[21] = 990, 10 // of about 1.5 µs, of about 1.6 ms
	fmt.Printf("%d calls of 1 ms and more take %.0f %% of the time\n", a.CountFrom(long), 100*a.ShareFrom(long))
	// Output: 10 calls of 1 ms and more take 91 % of the time
}

func ExamplePoint_Check() {
	p := sdk.Point{ID: "p", Hook: "malloc", Symbols: []string{"free"}}
	fmt.Println(p.Check())
	// Output: it has 2 targets; want one of Hook, Symbols and Static
}

func ExampleKnob_Check() {
	batch := sdk.Knob{Name: "batch", Min: sdk.Int(1), Max: sdk.Int(4096)}
	fmt.Println(batch.Check(sdk.Int(64)))
	fmt.Println(batch.Check(sdk.Int(10_000)))
	// Output:
	// <nil>
	// knob batch: 10000 is above the greatest allowed value 4096
}

func ExampleParseBytes() {
	for _, text := range []string{"64KiB", "1GB", "4096"} {
		n, err := sdk.ParseBytes(text)
		fmt.Println(n, err)
	}
	// Output:
	// 65536 <nil>
	// 1000000000 <nil>
	// 4096 <nil>
}

func ExampleBackoff() {
	var pause sdk.Backoff
	fmt.Println(pause.Next(), pause.Next(), pause.Next())
	pause.Reset()
	fmt.Println(pause.Next())
	// Output:
	// 2s 4s 8s
	// 2s
}
