// SPDX-License-Identifier: Apache-2.0

// Command hostile measures what the attacks of one user on the services of a node take
// from others: from a second user's real job, which is tuned, and from a program that has
// nothing to do with Attune. The services are as on a node, with the rights of their
// units; the attacker is an ordinary user with processors of their own, as a batch system
// has it, so that what their programs take by themselves is nobody else's.
//
// In each round the job is run with and without the attacks beside it, tuned and as it
// is, and compared with itself. The uninvolved program runs beside the attacker with and
// without the services: what differs is theirs.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"github.com/attune-hpc/attune/bench/internal/benchmark"
	"github.com/attune-hpc/attune/bench/internal/measure"
)

// document is what -json writes.
type document struct {
	benchmark.Common
	// Calm is without the attacks, Attacked with them.
	Calm     victims `json:"calm"`
	Attacked victims `json:"attacked"`
	// Malloc are rates of the program that nobody has registered, beside the attacker.
	MallocWithout rates          `json:"malloc_without_services"`
	MallocBeside  rates          `json:"malloc_beside_services"`
	AttackedFor   float64        `json:"services_attacked_for_seconds"`
	Memory        map[string]use `json:"memory"`
	Restarts      int            `json:"restarts"`
	// Lost are sessions of the second user that did not begin or were given up.
	Lost []string       `json:"lost_sessions"`
	Left []string       `json:"left"`
	Done map[string]int `json:"attacks"`
	// Idle are the attacks that did nothing in a round.
	Idle []string `json:"idle_attacks"`

	length float64 // seconds
	part   float64 // of a measurement
	keep   bool
}

// victims is what was measured of the second user.
type victims struct {
	Gains      []float64 `json:"gains"`
	Detections []float64 `json:"detections_ms"`
}

// leastRounds is how many give a median.
const leastRounds = 5

// detectionsEach is how many programs are detected in a part of a round.
const detectionsEach = 8

func main() {
	d := &document{Memory: make(map[string]use), Done: make(map[string]int)}
	flag.Float64Var(&d.length, "seconds", 1800, "length of the whole")
	flag.Float64Var(&d.part, "part", 10, "length of each run of a program")
	flag.BoolVar(&d.keep, "keep", false, "leave the folder with the logs of the services")
	os.Exit(benchmark.Main(benchmark.Options{
		Name: "hostile", Packages: []string{"libc6", "python3-numpy"}, Quick: benchmark.Quick{"seconds": "240", "part": "6"}, Document: d,
		Measure: d.measure,
	}))
}

func (d *document) measure(ctx context.Context) error {
	if os.Getuid() != 0 {
		return errors.New("a node's services are root's: run it as root")
	}
	dir, err := os.MkdirTemp("/tmp", "attune-hostile-") // sockets have short paths
	if err != nil {
		return err
	}
	f := folder{dir}
	if err := errors.Join(os.Chmod(dir, 0o755), f.prepare(ctx)); err != nil {
		return errors.Join(err, os.RemoveAll(dir))
	}
	end := time.Now().Add(time.Duration(d.length * float64(time.Second)))
	for n := 0; err == nil && (n < leastRounds || time.Now().Before(end)); n++ {
		err = d.round(ctx, f, n%2 == 1)
	}
	lost, readErr := f.lostSessions()
	if err = errors.Join(err, readErr); err == nil {
		d.Lost = lost
	}
	if err != nil || d.keep {
		say("logs are in " + dir)
		return err
	}
	return os.RemoveAll(dir)
}

// round measures everything once. Every other one is in the opposite order.
func (d *document) round(ctx context.Context, f folder, opposite bool) (err error) {
	steps := []func(context.Context) error{}
	r := &round{document: d, folder: f}
	if opposite {
		steps = append(steps, r.startSite, r.calm, r.attack, r.attacked, r.stopSite, r.mallocWithout, r.calmDown)
	} else {
		steps = append(steps, r.attack, r.mallocWithout, r.startSite, r.attacked, r.calmDown, r.calm, r.stopSite)
	}
	for _, step := range steps {
		if err = errors.Join(step(ctx), ctx.Err()); err != nil {
			break
		}
	}
	err = errors.Join(err, r.calmDown(ctx), r.stopSite(ctx))
	if err == nil {
		err = r.lookForTraces(ctx)
	}
	return err
}

// round is one, with what runs in it.
type round struct {
	*document
	folder

	running   *attack
	attacking atomic.Bool // there is one
	site      *site
	weigher   *weigher
}

func (r *round) attack(context.Context) (err error) {
	say("the attacks begin")
	r.running, err = r.startAttack()
	r.attacking.Store(err == nil)
	return err
}

// calmDown ends the attacks, if there are any.
func (r *round) calmDown(ctx context.Context) error {
	if r.running == nil {
		return nil
	}
	say("the attacks end")
	running := r.running
	r.running = nil
	r.attacking.Store(false)
	idle, err := running.stop(context.WithoutCancel(ctx), r.Done)
	r.Idle = append(r.Idle, idle...)
	return err
}

func (r *round) startSite(ctx context.Context) error {
	say("the services start")
	s, err := r.folder.startSite(ctx)
	if err != nil {
		return err
	}
	r.site, r.weigher = s, s.weigh(r.Memory, r.attacking.Load)
	return nil
}

// stopSite ends the services, if there are any, after it was seen that they are those
// that were started.
func (r *round) stopSite(context.Context) error {
	if r.site == nil {
		return nil
	}
	say("the services end")
	s := r.site
	r.site = nil
	r.AttackedFor += r.weigher.end()
	r.Restarts += s.restarted()
	return s.stop()
}

func (r *round) mallocWithout(ctx context.Context) error {
	say("a program that is not involved, beside the attacker alone")
	return r.addMalloc(ctx, &r.MallocWithout, r.part)
}

func (r *round) calm(ctx context.Context) error {
	say("the second user's programs")
	return r.victims(ctx, &r.Calm)
}

func (r *round) attacked(ctx context.Context) error {
	say("a program that is not involved, beside attacker and services")
	if err := r.addMalloc(ctx, &r.MallocBeside, r.part); err != nil {
		return err
	}
	say("the second user's programs, beside the attacker")
	return r.victims(ctx, &r.Attacked)
}

// victims measures the second user's programs.
func (r *round) victims(ctx context.Context, v *victims) error {
	gain, err := r.gain(ctx, r.part)
	if err != nil {
		return err
	}
	v.Gains = append(v.Gains, gain)
	detections, err := r.site.detections(ctx, detectionsEach)
	v.Detections = append(v.Detections, detections...)
	return err
}

// lookForTraces notes what the services have left, when that had its time.
func (r *round) lookForTraces(ctx context.Context) error {
	_ = measure.Await(ctx, patience, "traces to go", func() bool { return len(r.traces()) == 0 }) // what is left is told
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	for _, trace := range r.traces() {
		if !slices.Contains(r.Left, trace) {
			r.Left = append(r.Left, trace)
		}
	}
	return nil
}

func say(what string) { fmt.Fprintln(os.Stderr, "hostile:", what) }
