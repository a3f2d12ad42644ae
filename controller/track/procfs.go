// SPDX-License-Identifier: Apache-2.0

package track

import (
	"bytes"
	"errors"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/procid"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// Bounds of what is taken from a process, which can make all of it as long as
// it likes.
const (
	maxTextBytes    = 4096
	maxArguments    = 128
	maxCommandBytes = 8192
	// maxCgroupBytes is more than a line for each hierarchy with the longest path.
	maxCgroupBytes = 64 << 10
	maxObjects     = 1024
)

// description is what /proc told of one image.
type description struct {
	message *attunev1.Process // without handle, host, objects, sha256, mechanisms
	held    *procid.Process
	image   procid.Image
	live    int // the thread in whose files it was read
	session int
	job     string // ATTUNE_JOB
	off     bool   // ATTUNE=off
	// batchJob is the job without regard to that.
	batchJob *attunev1.Job
	// at is CLOCK_MONOTONIC in nanoseconds: what was described includes every
	// exec before that.
	at uint64
}

// describe reads what is told of a process at once; the objects, which take as
// long as all the rest, are left to refresh. An exec meanwhile would mix two
// images, and the files of a thread that ends are empty although others go on:
// both are looked for and the reading repeated. known is the event that the
// process was last seen in, or zero. The error wraps [procid.ErrGone] if the
// process has ended. Single facts that cannot be read (another user's process)
// are left out.
func describe(pid int, known Event) (*description, error) {
	const attempts = 3
	for attempt := 1; ; attempt++ {
		d, err := describeOnce(pid, known)
		if err != nil {
			return nil, err
		}
		d.at = monotonic()
		after, err := procid.ReadStat(pid)
		live, image := shown(pid, after)
		switch {
		case err == nil && live == d.live && image == d.image, attempt == attempts && err == nil:
			return d, nil
		case (err != nil || procid.Dying(pid, after)) && d.message.Executable != "" && len(d.message.CommandLine) > 0:
			return d, nil // it was read whole before it ended
		}
		d.held.Close()
		if err != nil {
			return nil, err
		}
	}
}

// Description is what /proc tells of a process.
type Description struct {
	// Process is without handle, host, objects, digest and mechanisms. Its Job is
	// what the batch system or the launcher says.
	Process *attunev1.Process
	// Held is the process; the caller closes it.
	Held *procid.Process
	// AttuneJob is the value of ATTUNE_JOB; "" without.
	AttuneJob string
	// Off says that its environment has ATTUNE=off: it is to be left alone.
	Off bool
}

// Describe tells of a process. known is the event that it was last seen in, or
// zero. The error wraps [procid.ErrGone] if the process has ended.
func Describe(pid int, known Event) (Description, error) {
	d, err := describe(pid, known)
	if err != nil {
		return Description{}, err
	}
	d.message.Job = d.batchJob
	return Description{d.message, d.held, d.job, d.off}, nil
}

func describeOnce(pid int, known Event) (*description, error) {
	held, stat, err := procid.OpenStat(pid)
	if err != nil {
		return nil, err
	}
	if procid.Dying(pid, stat) {
		return nil, errors.Join(procid.ErrGone, held.Close())
	}
	identity := held.Identity()
	live, image := shown(pid, stat)
	env := readEnviron(live)
	uid := known.UID
	if known.Kind != Exec || !known.HasUID { // it may have changed since a fork
		uid = readUID(live)
	}
	d := &description{
		held: held, image: image, live: live, session: stat.Session,
		job: env[JobVariable], off: env.off(), batchJob: env.job(placeOf(pid, stat)),
		message: &attunev1.Process{
			Identity: &attunev1.ProcessIdentity{
				BootId: identity.BootID, Pid: int32(pid), StartTicks: identity.StartTicks,
				ExeDevice: identity.ExeDevice, ExeInode: identity.ExeInode,
			},
			ParentPid: int32(stat.ParentPID), Uid: uid,
			Executable: readExecutable(live), CommandLine: readCommandLine(live),
			Rank: env.rank(), CpusAllowed: readCPUs(live),
		},
	}
	if d.message.Job = d.batchJob; d.job != "" {
		d.message.Job = &attunev1.Job{Kind: jobKind, Id: d.job}
	}
	return d, nil
}

// shown returns the thread whose files show the image of a process, and that
// image: the files of a first thread that has ended do not any more.
func shown(pid int, stat procid.Stat) (live int, image procid.Image) {
	live = procid.LiveThread(pid, stat)
	if live == pid {
		return pid, stat.Image
	}
	thread, err := procid.ReadStat(live)
	if err != nil {
		return live, stat.Image // ended too, by now
	}
	return live, thread.Image
}

// monotonic is the clock of the kernel's events, in nanoseconds.
func monotonic() uint64 {
	var now unix.Timespec
	// It cannot fail for this clock.
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &now)
	return uint64(now.Nano())
}

// unixNano is the time of day at a time of the monotonic clock; now for 0.
func unixNano(at uint64) int64 {
	now := time.Now().UnixNano()
	if at == 0 {
		return now
	}
	return now - int64(monotonic()-at)
}

// beforeStart says whether a time of the monotonic clock, in nanoseconds, lies
// before the start of a process. Start times count from boot, suspended time
// included, which the monotonic clock leaves out.
func beforeStart(at, startTicks uint64) bool {
	var boot, mono unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &mono)
	_ = unix.ClockGettime(unix.CLOCK_BOOTTIME, &boot)
	suspended := uint64(max(boot.Nano()-mono.Nano(), 0))
	return at+suspended < startTicks*(1e9/procid.TicksPerSecond)
}

func procPath(pid int, name string) string { return "/proc/" + strconv.Itoa(pid) + "/" + name }

func readEnviron(pid int) environment {
	data, err := procid.ReadFile(pid, "environ", procid.MaxEnvironBytes)
	if err != nil {
		return environment{}
	}
	return parseEnviron(data)
}

func readExecutable(pid int) string {
	path, err := os.Readlink(procPath(pid, "exe"))
	if err != nil {
		return ""
	}
	return strings.ToValidUTF8(strings.TrimSuffix(path, " (deleted)"), "?")
}

// executableInode names the executable; zeros where it cannot be seen.
func executableInode(pid int) (device, inode uint64) {
	var st unix.Stat_t
	if unix.Stat(procPath(pid, "exe"), &st) != nil {
		return 0, 0
	}
	return uint64(st.Dev), st.Ino
}

func readCommandLine(pid int) []string {
	data, err := procid.ReadFile(pid, "cmdline", maxCommandBytes)
	if err != nil {
		return nil
	}
	return ParseCommandLine(data)
}

// ParseCommandLine splits the content of /proc/PID/cmdline.
func ParseCommandLine(data []byte) []string {
	var words []string
	for len(data) > 0 && len(words) < maxArguments {
		var word []byte
		word, data, _ = bytes.Cut(data, []byte{0})
		words = append(words, strings.ToValidUTF8(string(word), "?"))
	}
	return words
}

// readUID returns 0 where it cannot be told.
func readUID(pid int) uint32 {
	uid, _ := procid.UserID(pid)
	return uid
}

func readObjects(pid int) ([]string, error) {
	mappings, err := objfile.Mappings(pid)
	if err != nil {
		return nil, err
	}
	paths := objfile.Objects(mappings)
	paths = paths[:min(len(paths), maxObjects)]
	for i, path := range paths {
		paths[i] = strings.ToValidUTF8(path, "?")
	}
	return paths, nil
}

// LinkedGo stands among the objects of a program in Go: its run-time, which others
// have as a library.
const LinkedGo = "linked:go"

// linkedIn lists what is in the executable as an object would be. That does not
// change as long as the process runs it.
func (m *member) linkedIn() []string {
	if m.linked == nil {
		m.linked = readLinked(m.pid)
	}
	return m.linked
}

// readLinked never returns nil.
func readLinked(pid int) []string {
	file, err := objfile.Open("/proc/" + strconv.Itoa(pid) + "/exe")
	if err != nil {
		return []string{} // it has ended, or is another user's
	}
	defer func() { _ = file.Close() }() // read only
	if file.IsGo() {
		return []string{LinkedGo}
	}
	return []string{}
}

func readCPUs(pid int) uint32 {
	n, err := procid.CPUsAllowed(pid)
	if err != nil {
		return 0
	}
	return uint32(n)
}
