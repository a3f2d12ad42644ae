// SPDX-License-Identifier: Apache-2.0

package detail

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/controller/source"
	"github.com/attune-hpc/attune/internal/procid"
	"github.com/attune-hpc/attune/internal/testing/openfiles"
	"github.com/attune-hpc/attune/internal/testing/patience"
	"github.com/attune-hpc/attune/internal/testing/targets"
	"github.com/attune-hpc/attune/proto/attune/series"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	sockets = series.TableSockets
	pipes   = series.TablePipes
	mapped  = series.TableMemory
	threads = series.TableThreads
)

// rig is a reader with a clock of its own, and a program that it reads.
type rig struct {
	*targets.Target
	t      testing.TB
	reader *Reader
	want   want
	now    time.Time
}

func newRig(t testing.TB, kinds ...series.TableID) *rig {
	t.Helper()
	target := targets.Start(t, targets.Build(t, "testdata/files.c"))
	identity, err := procid.Of(target.PID)
	if err != nil {
		t.Fatal(err)
	}
	return newRigOf(t, &rig{Target: target, want: want{source.Process{Handle: 1, Identity: identity}, kinds}, now: time.Unix(1000, 0)})
}

// want is what is to be read of a process.
type want struct {
	source.Process
	kinds []series.TableID
}

// read reads it once, and says how much of the bound was used. nil: it has ended.
func (r *rig) read(w want, most int) (details *series.Details, used int) {
	var to source.Measured
	room := source.NewRoom(most)
	if r.reader.Read(w.Process, w.kinds, room, &to) != nil {
		return nil, 0
	}
	const slack = 1000 // what was begun may take more than there was room for
	room.Take(-slack)
	return &to.Details, most + slack - room.Left()
}

// newRigOf has another reader look at the program of a rig.
func newRigOf(t testing.TB, of *rig) *rig {
	t.Helper()
	r := &rig{Target: of.Target, t: t, now: of.now, want: of.want}
	r.reader = New()
	r.reader.now = func() time.Time { return r.now }
	t.Cleanup(func() {
		if err := r.reader.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

// does has the program do something, and returns the numbers that it answers.
func (r *rig) does(command string) (numbers []int) {
	r.t.Helper()
	line := r.Ask(r.t, command)
	for word := range strings.FieldsSeq(line) {
		var n int
		if _, err := fmt.Sscan(word, &n); err != nil && line != "done" {
			r.t.Fatalf("%s: the program says %q", command, line)
		}
		numbers = append(numbers, n)
	}
	return numbers
}

// period is between two rounds: each of them begins a listing, and reads every
// socket, in whichever way this kernel allows.
const period = max(ListEvery, LookForeign)

// round reads a round.
func (r *rig) round() *series.Details {
	r.t.Helper()
	return r.roundAfter(period)
}

func (r *rig) roundAfter(d time.Duration) *series.Details {
	r.t.Helper()
	r.now = r.now.Add(d)
	details, _ := r.read(r.want, 1000)
	for what, text := range failures(details) {
		if text != "" {
			r.t.Fatal(what, text)
		}
	}
	return details
}

// failures are why kinds of details cannot be read; empty of those that can.
func failures(d *series.Details) map[string]string {
	out := map[string]string{}
	if d == nil {
		return out
	}
	if d.Sockets != nil {
		out["sockets"] = d.Sockets.Error
	}
	if d.Pipes != nil {
		out["pipes"] = d.Pipes.Error
	}
	if d.Memory != nil {
		out["memory"] = d.Memory.Error
	}
	return out
}

// items and total are of rows; none of those that were not read.
func items[T any](rows *series.Rows[T]) []T {
	if rows == nil {
		return nil
	}
	return rows.Items
}

func total[T any](rows *series.Rows[T]) int {
	if rows == nil {
		return 0
	}
	return rows.Total
}

// settle makes as many listings as it takes for all to be read.
func (r *rig) settle() {
	r.t.Helper()
	for range settled {
		r.round()
	}
}

// socketsOf returns the sockets of a round by descriptor.
func (r *rig) socketsOf(d *series.Details) map[int]*series.Socket {
	r.t.Helper()
	all := map[int]*series.Socket{}
	for _, s := range items(d.Sockets) {
		if all[s.FD] != nil {
			r.t.Errorf("descriptor %d is told of twice", s.FD)
		}
		all[s.FD] = &s
	}
	return all
}

// answers says whether the kernel answers after sockets of a kind. Those of the virtual
// machines do: scripts/vm-kernel has the modules.
func answers(f finds) bool { return f.any || os.Getenv("ATTUNE_VM") != "" }

// What is new is counted at once, and not touched before it was seen twice.
func TestWhatIsNewIsLeftAlone(t *testing.T) {
	r := newRig(t, sockets, pipes)
	if d := r.round(); d.Sockets != nil || d.Pipes != nil {
		t.Errorf("told before it was seen twice: %v", d) // that there are none would be wrong
	}
	has := total(r.round().Pipes) // its standard input and output among them
	r.does("tcp")
	r.does("pipe")
	for round := range settled {
		d := r.round()
		if total(d.Sockets) != 3 || total(d.Pipes) != has+2 {
			t.Errorf("round %d: %d sockets, %d pipes", round, total(d.Sockets), total(d.Pipes))
		}
		if n := len(items(d.Sockets)); (n == 3) != (round+1 >= settled) || n%3 != 0 {
			t.Errorf("round %d: %d sockets were read", round, n)
		}
	}
	for range 5 { // what lives shorter than a round is never read
		fds := r.does("tcp")
		if n := len(items(r.round().Sockets)); n != 3 {
			t.Errorf("%d sockets were read", n)
		}
		for _, fd := range fds {
			r.does(fmt.Sprint("close ", fd))
		}
	}
}

func TestTCP(t *testing.T) {
	for _, command := range []string{"tcp", "tcp6"} {
		t.Run(command, func(t *testing.T) {
			r := newRig(t, sockets)
			fds := r.does(command)
			r.settle()
			all := r.socketsOf(r.round())
			one, two, listener := all[fds[0]], all[fds[1]], all[fds[2]]
			if one.Local == "" || one.Local != two.Peer || one.Peer != two.Local || two.Local != listener.Local {
				t.Errorf("addresses %q-%q, %q-%q, %q", one.Local, one.Peer, two.Local, two.Peer, listener.Local)
			}
			if one.TCP.State != "established" || listener.TCP.State != "listen" || one.TCP.Congestion == "" ||
				one.SendBufferBytes == 0 || one.ReceiveBufferBytes == 0 || one.TCP.SegmentBytes == 0 {
				t.Errorf("socket %v, listener %v", one, listener)
			}
			wrote := r.does(fmt.Sprintf("write %d 20000000", fds[0]))[0]
			all = r.socketsOf(r.round())
			checkFull(t, all[fds[0]], all[fds[1]], uint64(wrote))
			r.does(fmt.Sprintf("read %d %d", fds[1], 1<<20))
			before := all[fds[0]].TCP.AckedBytes
			patience.Until(t, "more bytes acknowledged when the peer has read", func() bool {
				return r.socketsOf(r.round())[fds[0]].TCP.AckedBytes > before
			})
		})
	}
}

// checkFull is about a connection that the peer has not read from, of which all
// that fits has been written.
func checkFull(t *testing.T, one, two *series.Socket, wrote uint64) {
	t.Helper()
	acked, received := one.TCP.AckedBytes, two.TCP.ReceivedBytes
	unsent, unacked := one.TCP.UnsentBytes, one.TCP.UnackedSegments
	// A connection's beginning counts as one byte.
	if received == 0 || acked > received+1 || acked+unsent > wrote+1 || unacked == 0 && acked+unsent < wrote {
		t.Errorf("of %d bytes %d are acknowledged, %d received, %d unsent, %d segments on their way", wrote, acked, received, unsent, unacked)
	}
	if one.SendQueuedBytes == 0 || two.ReceiveQueuedBytes == 0 || one.TCP.DataSegmentsSent == 0 {
		t.Errorf("full connection: %v to %v", one, two)
	}
}

// Between two looks the kernel is asked: what it tells is new, what only a look
// tells is not.
func TestOptionsAreReadSeldom(t *testing.T) {
	r := newRig(t, sockets)
	fd := r.does("tcp")[0]
	r.settle()
	r.does(fmt.Sprint("nodelay ", fd))
	r.does(fmt.Sprintf("sndbuf %d 20000", fd))
	r.does(fmt.Sprintf("write %d 100", fd))
	asked := r.socketsOf(r.round())[fd]
	if !answers(r.reader.diag.tcpFinds) {
		t.Skip("this kernel has no tcp_diag: sockets are borrowed each time")
	}
	if asked.TCP.NoDelay || asked.SendBufferSet || asked.SendBufferBytes != 40000 || asked.TCP.DataSegmentsSent != 1 {
		t.Errorf("between two looks: %v", asked)
	}
	r.now = r.now.Add(LookEvery)
	looked := r.socketsOf(r.round())[fd]
	if !looked.TCP.NoDelay || !looked.SendBufferSet {
		t.Errorf("after a look: %v", looked)
	}
}

func TestUnixSockets(t *testing.T) {
	r := newRig(t, sockets)
	fds := r.does("unix")
	r.does(fmt.Sprintf("write %d 5000", fds[0]))
	r.settle()
	all := r.socketsOf(r.round())
	one, two := all[fds[0]], all[fds[1]]
	if one.Kind != kindUnix || one.TCP != nil ||
		answers(r.reader.diag.unixFinds) && one.Peer != fmt.Sprintf("socket:[%d]", two.Inode) {
		t.Errorf("socket %v", one)
	}
	if one.SendBufferBytes == 0 || one.SendQueuedBytes < 5000 || two.SendQueuedBytes >= 5000 {
		t.Errorf("5000 bytes from %v to %v", one, two)
	}
}

// A kernel without the modules that answer is not asked for long; sockets are
// borrowed then.
func TestKernelThatDoesNotAnswer(t *testing.T) {
	r := newRig(t, sockets)
	r.reader.diag.tcpFinds.misses, r.reader.diag.unixFinds.misses = maxMisses, maxMisses
	areBorrowed(t, r)
	if d := r.reader.diag; d.sequence != 0 {
		t.Errorf("the kernel was asked %d times", d.sequence)
	}
}

// Where the kernel may not be asked sockets are borrowed, too.
func TestKernelThatMayNotBeAsked(t *testing.T) {
	r := newRig(t, sockets)
	null, err := unix.Open(os.DevNull, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	r.reader.diag.fd = null // nothing can be sent there
	areBorrowed(t, r)
}

// areBorrowed looks that sockets are read without the kernel's answers.
func areBorrowed(t *testing.T, r *rig) {
	t.Helper()
	tcp, pair := r.does("tcp"), r.does("unix")
	r.settle()
	r.round()
	for _, fd := range []int{pair[0], tcp[0]} {
		r.does(fmt.Sprintf("sndbuf %d 20000", fd))
	}
	r.does(fmt.Sprintf("write %d 5000", pair[0]))
	r.does(fmt.Sprintf("write %d 100", tcp[0]))
	r.now = r.now.Add(LookEvery)
	for range 2 { // each of them is borrowed four times a second
		all := r.socketsOf(r.round())
		if all[tcp[0]].TCP.DataSegmentsSent != 1 || all[pair[0]].SendQueuedBytes < 5000 || len(all) != 5 {
			t.Errorf("sockets %v", all)
		}
		// Of a Unix socket the kernel's answer would not tell.
		if !all[tcp[0]].SendBufferSet || all[pair[0]].SendBufferSet {
			t.Errorf("sockets with a set buffer: %v", all)
		}
		r.now = r.now.Add(LookForeign)
	}
}

// What the kernel has found once it is asked for, however often it misses.
func TestKernelThatMissesSome(t *testing.T) {
	miss := func() error { return errClosed }
	asked := 0
	count := func() error { asked++; return miss() }
	var never, once finds
	for range 3 * maxMisses {
		_ = never.use(count)
	}
	if asked != maxMisses {
		t.Errorf("asked %d times without an answer", asked)
	}
	_ = once.use(func() error { return nil })
	asked = 0
	for range 3 * maxMisses {
		_ = once.use(count)
	}
	if asked != 3*maxMisses {
		t.Errorf("asked %d times", asked)
	}
}

func TestOtherSockets(t *testing.T) {
	r := newRig(t, sockets)
	closed, udp := r.does("closed")[0], r.does("udp")[0]
	r.settle()
	first := r.roundAfter(50 * time.Millisecond)
	if all := r.socketsOf(first); total(first.Sockets) != 2 || all[udp] != nil || all[closed] != nil {
		t.Errorf("before the next look: %v", first)
	}
	r.now = r.now.Add(LookForeign)
	if s := r.socketsOf(r.round())[closed]; s.TCP.State != "closed" || s.Local != "0.0.0.0:0" || s.Peer != "" {
		t.Errorf("socket that is not connected: %v", s)
	}
}

func TestPipes(t *testing.T) {
	r := newRig(t, pipes)
	fds := r.does("pipe")
	again := r.does(fmt.Sprint("dup ", fds[1]))[0]
	r.does(fmt.Sprintf("write %d 5000", fds[1]))
	r.settle()
	found := 0
	for _, p := range items(r.round().Pipes) {
		switch p.FD {
		case fds[0], fds[1]:
			found++
			if p.Writes != (p.FD == fds[1]) || p.CapacityBytes < 4096 || p.QueuedBytes != 5000 || p.Inode == 0 {
				t.Errorf("pipe %v", p)
			}
		case again:
			t.Error("a descriptor that was duplicated is told of twice")
		}
	}
	if found != 2 {
		t.Errorf("%d ends of the pipe", found)
	}
	r.does(fmt.Sprintf("read %d 5000", fds[0]))
	for _, p := range items(r.round().Pipes) {
		if p.FD == fds[0] && p.QueuedBytes != 0 {
			t.Errorf("pipe that was read empty: %v", p)
		}
	}
}

// Thousands of descriptors are listed and read piece by piece, each of them once
// in a turn.
func TestManyDescriptors(t *testing.T) {
	const pairs, perRound = 1000, 100
	r := newRig(t, sockets)
	r.does(fmt.Sprint("many ", pairs))
	listings := 0
	for round := 0; ; round++ {
		r.now = r.now.Add(ListEvery)
		d, used := r.read(r.want, perRound)
		if limit := perRound + descriptorsPerRound/listedPerItem; used > limit {
			t.Fatalf("round %d used %d of %d", round, used, perRound)
		}
		if p := r.reader.processes[1]; p.table.dir == nil {
			listings++
		}
		if listings >= settled && total(d.Sockets) == 2*pairs {
			break
		}
		if round > 100 {
			t.Fatalf("not settled: %v", d)
		}
	}
	p := r.reader.processes[1]
	p.sockets = turn{}
	seen := map[int]int{}
	for p.sockets.after != 0 || len(seen) == 0 {
		for _, e := range p.sockets.next(p.table.sockets.settled, perRound) {
			seen[e.fd]++
		}
	}
	for fd, times := range seen {
		if times != 1 {
			t.Errorf("descriptor %d was read %d times in a turn", fd, times)
		}
	}
	if len(seen) != 2*pairs {
		t.Errorf("%d of %d sockets in a turn", len(seen), 2*pairs)
	}
}

// Between two listings descriptors are read, and not listed.
func TestListingsHaveTheirTime(t *testing.T) {
	r := newRig(t, sockets)
	fds := r.does("unix")
	r.settle()
	r.does("unix")
	r.does(fmt.Sprintf("write %d 5000", fds[0]))
	between := r.roundAfter(50 * time.Millisecond)
	if s := r.socketsOf(between)[fds[0]]; answers(r.reader.diag.unixFinds) && s.SendQueuedBytes < 5000 || total(between.Sockets) != 2 {
		t.Errorf("between two listings %v", between)
	}
	if n := total(r.round().Sockets); n != 4 {
		t.Errorf("%d sockets at the next listing", n)
	}
}

// A number that means another file by the time it is borrowed is left alone.
func TestDescriptorThatChangedHands(t *testing.T) {
	r := newRig(t, sockets, pipes)
	fds := r.does("pipe")
	r.settle()
	pipes := len(items(r.round().Pipes))
	p := r.reader.processes[1]
	stale := p.table.entries[fds[1]]
	for _, fd := range fds {
		r.does(fmt.Sprint("close ", fd))
	}
	if err := p.borrow(stale, func(int) error { return nil }); !errors.Is(err, errClosed) {
		t.Errorf("closed: %v", err)
	}
	if again := r.does("pipe"); again[1] != fds[1] {
		t.Fatalf("descriptors %v, want %v", again, fds)
	}
	used := false
	err := p.borrow(stale, func(int) error { used = true; return nil })
	if !errors.Is(err, errClosed) || used {
		t.Errorf("used again: %v, looked at: %v", err, used)
	}
	r.round()
	if n := len(items(r.round().Pipes)); n != pipes {
		t.Errorf("%d pipes, want %d as before: two ends were closed, and two opened", n, pipes)
	}
}

func TestMemory(t *testing.T) {
	r := newRig(t, mapped)
	before := r.round().Memory
	if r.round().Memory != nil {
		t.Error("memory was read again at once")
	}
	r.does("map 64")
	r.now = r.now.Add(memoryEvery)
	after := r.round().Memory
	const size = 64 << 20
	if after.AnonymousBytes < before.AnonymousBytes+size || after.ResidentBytes < before.ResidentBytes+size ||
		after.MappedAnonymousBytes < before.MappedAnonymousBytes+size || after.LargestAnonymousBytes < size ||
		after.HugeBytes > after.AnonymousBytes || after.Mappings == 0 || after.AvailableBytes == 0 {
		t.Errorf("memory %v, before %v", after, before)
	}
}

// All memory lies on some node, where the kernel knows nodes.
func TestMemoryNodes(t *testing.T) {
	r := newRig(t, series.TableMemoryNodes)
	r.does("map 64")
	nodes := items(r.round().MemoryNodes)
	if _, err := os.Stat("/proc/self/numa_maps"); err != nil {
		t.Skip("this kernel has no numa_maps")
	}
	var bytes uint64
	var share float64
	for _, n := range nodes {
		bytes += n.ResidentBytes
		share += n.Share
	}
	if bytes < 64<<20 || share < 0.999 || share > 1.001 || nodes[0].Policy == "" {
		t.Errorf("memory is on %+v", nodes)
	}
	if again := r.round().MemoryNodes; again != nil {
		t.Errorf("read again at once: %v", again)
	}
}

// The longer reading took, the longer is the pause.
func TestMemoryIsReadTheLessOftenTheLongerItTakes(t *testing.T) {
	now := time.Unix(1000, 0)
	m := pace{}
	clock := func() time.Time {
		now = now.Add(500 * time.Millisecond)
		return now
	}
	read := 0
	for range 2 {
		m.read(clock, memoryEvery, func() { read++ })
	}
	if read != 1 {
		t.Fatalf("read %d times", read)
	}
	if pause := m.due.Sub(now); pause != 50*time.Second-500*time.Millisecond {
		t.Errorf("pause of %v after half a second", pause)
	}
}

// A process that has ended leaves nothing behind, and another one with its
// number is not taken for it.
func TestProcessThatEnds(t *testing.T) {
	before := openfiles.Count(t)
	r := newRig(t, sockets, pipes, mapped, threads)
	r.does("tcp")
	r.settle()
	other := r.want
	other.Handle, other.Identity.StartTicks = 2, other.Identity.StartTicks+1
	if d, _ := r.read(other, 10); d != nil {
		t.Errorf("another process' details: %v", d)
	}
	r.Kill()
	if d := r.round(); d != nil {
		t.Errorf("details after the end: %v", d)
	}
	r.reader.Keep(func(uint64) bool { return false })
	if err := r.reader.Close(); err != nil {
		t.Error(err)
	}
	if after := openfiles.Count(t); after > before+1 { // the target's own pipe
		t.Errorf("%d descriptors before, %d after", before, after)
	}
}
