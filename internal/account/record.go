// SPDX-License-Identifier: Apache-2.0

package account

import "time"

// SchemaID names the layout of the JSON document. Fields are added under the
// same name; a change of meaning makes a new one.
const SchemaID = "attune.account/1"

// Accuracy is how a number is to be read.
type Accuracy string

// The accuracies.
const (
	// Exact is the kernel's own total.
	Exact Accuracy = "exact"
	// Sampled was put together from moments: what was between two is not in it.
	Sampled Accuracy = "sampled"
	// Bound was measured of more, or of less, than the command's processes:
	// Missing says which.
	Bound Accuracy = "bound"
)

// What Exit.Type may be.
const (
	ExitNormal = "normal"
	ExitSignal = "signal"
	ExitLimits = "limits"
	ExitLost   = "lost"
)

// Account is what a command and all its processes took, from its start to its end.
// The tags are the documentation of the JSON schema and of the reference page.
type Account struct {
	Schema          string              `json:"schema" jsonschema:"Layout of this document: attune.account/1."`
	Version         string              `json:"version" jsonschema:"Version of Attune."`
	Command         []string            `json:"command" jsonschema:"Command line as it was given."`
	Directory       string              `json:"directory,omitempty" jsonschema:"Directory in which the command was started."`
	Host            Host                `json:"host" jsonschema:"Machine that the command ran on."`
	Available       Available           `json:"available" jsonschema:"What the command could have: asked of the batch system, else what control groups and the machine leave. Sources says which it is."`
	Exit            Exit                `json:"exit" jsonschema:"How the command ended."`
	Start           time.Time           `json:"start" jsonschema:"When the command was started."`
	End             time.Time           `json:"end" jsonschema:"When the command ended; with --wait the last of its processes."`
	WallSeconds     float64             `json:"wall_seconds" unit:"seconds" jsonschema:"Time from start to end."`
	CPUSeconds      *float64            `json:"cpu_seconds,omitempty" unit:"seconds" jsonschema:"CPU time of all processes."`
	UserSeconds     *float64            `json:"user_seconds,omitempty" unit:"seconds" jsonschema:"CPU time of all processes outside the kernel."`
	SystemSeconds   *float64            `json:"system_seconds,omitempty" unit:"seconds" jsonschema:"CPU time of all processes in the kernel."`
	CPUWaitSeconds  *float64            `json:"cpu_wait_seconds,omitempty" unit:"seconds" jsonschema:"Time that threads of all processes could have run and waited for a CPU."`
	CoresAverage    *float64            `json:"cores_average,omitempty" unit:"cores" jsonschema:"CPU time by wall time."`
	CoresPeak       *float64            `json:"cores_peak,omitempty" unit:"cores" jsonschema:"Most CPU time by wall time between two samples."`
	Time            Time                `json:"time" jsonschema:"What the wall time went into: the parts add up to it. While threads run or wait for a CPU, their times count; of several at one time, as much as the time that passes. In the rest none does, and it belongs to the first of what follows that a thread waits for."`
	Processes       Processes           `json:"processes" jsonschema:"Processes, the command's own among them."`
	Nodes           []Node              `json:"nodes,omitempty" jsonschema:"Nodes that the processes ran on, in the order of their names, where they are several: what could be had is that of all together then."`
	Memory          Memory              `json:"memory" jsonschema:"Memory of all processes at one time."`
	IO              IO                  `json:"io" jsonschema:"Bytes and calls of all processes."`
	ContextSwitches Switches            `json:"context_switches" jsonschema:"How often threads gave up a CPU."`
	Faults          Faults              `json:"faults" jsonschema:"Page faults of all processes."`
	Disk            Disk                `json:"disk" jsonschema:"Footprint of directories, with --measure-dir."`
	Files           []File              `json:"files,omitempty" jsonschema:"Files that the processes used, with --files: those with the most bytes first, or where bytes are not known those that were open for writing. Pipes and sockets are not among them."`
	Tree            []Process           `json:"tree,omitempty" jsonschema:"Every process with its own account, in the order of their starts; the first is the command."`
	Provenance      *Provenance         `json:"provenance,omitempty" jsonschema:"Where the results came from, if that was to be recorded."`
	Snapshots       []Snapshot          `json:"snapshots,omitempty" jsonschema:"What there was when events came that were asked for."`
	Series          *Series             `json:"series,omitempty" jsonschema:"Where the time series was written, if one was."`
	History         []Moment            `json:"history,omitempty" jsonschema:"How it went: spans of time one after another, which are longer the longer the command ran."`
	PeakTimes       map[string]float64  `json:"peak_times,omitempty" unit:"seconds" jsonschema:"When a sampled peak was, from the start, by the field's name."`
	Accuracy        map[string]Accuracy `json:"accuracy" jsonschema:"How each number is to be read, by the field's name: exact, sampled or bound. In tree[] and history[] it is that of the field of the same name here, or of tree.NAME or history.NAME where that is named."`
	Sources         map[string]string   `json:"sources,omitempty" jsonschema:"What measured a field, by its name."`
	Missing         map[string]string   `json:"missing,omitempty" jsonschema:"Why a field is absent or a bound, by its name."`
	Cost            Cost                `json:"cost" jsonschema:"What the accounting took."`
}

// Host is a machine.
type Host struct {
	Name        string `json:"name,omitempty" jsonschema:"Host name."`
	Kernel      string `json:"kernel,omitempty" jsonschema:"Release of the kernel."`
	CPUs        int    `json:"cpus,omitempty" unit:"CPUs" jsonschema:"CPUs that the command may use."`
	MemoryBytes uint64 `json:"memory_bytes,omitempty" unit:"bytes" jsonschema:"Memory of the machine."`
}

// Available is what a command could have.
type Available struct {
	System      string   `json:"batch_system,omitempty" jsonschema:"Batch system: slurm, pbs, gridengine or lsf; absent: this was no job."`
	Job         string   `json:"job,omitempty" jsonschema:"Its id of the job."`
	Part        bool     `json:"job_of_several_tasks,omitempty" jsonschema:"The job is of several tasks or nodes, and this command may not be all of it."`
	Cores       *float64 `json:"cores,omitempty" unit:"cores" jsonschema:"CPU time by wall time."`
	Memory      *uint64  `json:"memory_bytes,omitempty" unit:"bytes" jsonschema:"Memory."`
	WallSeconds *float64 `json:"wall_seconds,omitempty" unit:"seconds" jsonschema:"Time that was asked for."`
}

// Node is what the processes on one node could have and took there.
type Node struct {
	Name     string   `json:"name" jsonschema:"Host name."`
	Cores    *float64 `json:"cores,omitempty" unit:"cores" jsonschema:"CPU time by wall time that they could have."`
	Memory   *uint64  `json:"memory_bytes,omitempty" unit:"bytes" jsonschema:"Memory that they could have."`
	CPU      *float64 `json:"cpu_seconds,omitempty" unit:"seconds" jsonschema:"CPU time of all processes there."`
	Resident *uint64  `json:"resident_peak_bytes,omitempty" unit:"bytes" jsonschema:"Peak of the resident memory of all processes there at one time."`
}

// The sources of what is available; another one is a batch system's.
const (
	SourceGroup   = "control group"
	SourceMachine = "machine"
)

// Exit is how a command or one of its processes ended.
type Exit struct {
	Type   string   `json:"type" jsonschema:"normal (it has a code), signal, limits (it was ended because of a limit), or lost (nobody was told)."`
	Code   *int     `json:"code,omitempty" jsonschema:"Exit code, if it exited."`
	Signal string   `json:"signal,omitempty" jsonschema:"Signal that killed it, e.g. SIGTERM."`
	Limits []string `json:"limits,omitempty" jsonschema:"Limits that were exceeded, each as 'field: peak > limit'. If type is not limits, the command had ended before that was seen."`
	// SoftLimits end nothing.
	SoftLimits []string `json:"soft_limits,omitempty" jsonschema:"Soft limits that were exceeded, in the same words."`
}

// Time is what the wall time of all processes together went into.
type Time struct {
	Computing *float64 `json:"computing_seconds,omitempty" unit:"seconds" jsonschema:"Running outside the kernel."`
	Kernel    *float64 `json:"kernel_seconds,omitempty" unit:"seconds" jsonschema:"Running in the kernel."`
	CPU       *float64 `json:"cpu_wait_seconds,omitempty" unit:"seconds" jsonschema:"Waiting for a CPU."`
	Disk      *float64 `json:"disk_seconds,omitempty" unit:"seconds" jsonschema:"Waiting for storage, also that of a network."`
	Network   *float64 `json:"network_seconds,omitempty" unit:"seconds" jsonschema:"Waiting in a call on a socket of a network."`
	Pipes     *float64 `json:"pipes_seconds,omitempty" unit:"seconds" jsonschema:"Waiting for another process, in a call on a pipe or a local socket."`
	Events    *float64 `json:"events_seconds,omitempty" unit:"seconds" jsonschema:"Waiting in poll, select, epoll or io_uring: for descriptors or a timeout."`
	Locks     *float64 `json:"locks_seconds,omitempty" unit:"seconds" jsonschema:"Waiting for another thread: a lock, a condition, a join (futex)."`
	Sleep     *float64 `json:"sleep_seconds,omitempty" unit:"seconds" jsonschema:"Sleeping for a time that the program asked for."`
	Other     *float64 `json:"other_seconds,omitempty" unit:"seconds" jsonschema:"Anything else, and what was not seen."`
}

// Processes is how many there were.
type Processes struct {
	Total *uint64 `json:"total,omitempty" unit:"processes" jsonschema:"Processes that there were until the end."`
	Peak  *uint64 `json:"peak,omitempty" unit:"processes" jsonschema:"Most at one time."`
	Left  *uint64 `json:"left,omitempty" unit:"processes" jsonschema:"Processes that were alive at the end: what they took until then is in the account."`
}

// Memory is that of all processes at one time, unless it is in a Process.
type Memory struct {
	Resident     *uint64 `json:"resident_peak_bytes,omitempty" unit:"bytes" jsonschema:"Peak of the resident memory; pages that several processes share count for each."`
	Anonymous    *uint64 `json:"anonymous_peak_bytes,omitempty" unit:"bytes" jsonschema:"Peak of the memory that no file is behind."`
	Proportional *uint64 `json:"proportional_peak_bytes,omitempty" unit:"bytes" jsonschema:"Peak of the resident memory; shared pages count once (PSS)."`
	Virtual      *uint64 `json:"virtual_peak_bytes,omitempty" unit:"bytes" jsonschema:"Peak of the address space."`
	Swap         *uint64 `json:"swap_peak_bytes,omitempty" unit:"bytes" jsonschema:"Peak of what was swapped out."`
	Cgroup       *uint64 `json:"cgroup_peak_bytes,omitempty" unit:"bytes" jsonschema:"Peak of what the control group was charged with: shared pages once, with file cache and kernel memory."`
}

// IO is bytes and calls by three notions of what is read and written.
type IO struct {
	Read            *uint64 `json:"read_bytes,omitempty" unit:"bytes" jsonschema:"Bytes that system calls read, from wherever."`
	Written         *uint64 `json:"written_bytes,omitempty" unit:"bytes" jsonschema:"Bytes that system calls wrote, to wherever."`
	ReadCalls       *uint64 `json:"read_calls,omitempty" unit:"calls" jsonschema:"System calls that read."`
	WrittenCalls    *uint64 `json:"written_calls,omitempty" unit:"calls" jsonschema:"System calls that wrote."`
	StorageRead     *uint64 `json:"storage_read_bytes,omitempty" unit:"bytes" jsonschema:"Bytes fetched from storage."`
	StorageWritten  *uint64 `json:"storage_written_bytes,omitempty" unit:"bytes" jsonschema:"Bytes that are to go to storage: of dirtied pages, without those of files that were removed before."`
	NetworkReceived *uint64 `json:"network_received_bytes,omitempty" unit:"bytes" jsonschema:"Bytes that system calls received from sockets of IPv4 and IPv6, with --files; the loopback interface counts."`
	NetworkSent     *uint64 `json:"network_sent_bytes,omitempty" unit:"bytes" jsonschema:"Bytes that system calls sent by sockets of IPv4 and IPv6, with --files; the loopback interface counts."`
}

// Switches are context switches.
type Switches struct {
	Voluntary   *uint64 `json:"voluntary,omitempty" unit:"switches" jsonschema:"To wait for something."`
	Involuntary *uint64 `json:"involuntary,omitempty" unit:"switches" jsonschema:"Because others were to run."`
}

// Faults are page faults.
type Faults struct {
	Minor *uint64 `json:"minor,omitempty" unit:"faults" jsonschema:"Without storage."`
	Major *uint64 `json:"major,omitempty" unit:"faults" jsonschema:"That fetched from storage."`
}

// Disk is what lay in directories and below.
type Disk struct {
	Directories []string `json:"directories,omitempty" jsonschema:"Absolute paths of what was measured, with all that was below on the same file system."`
	Files       *uint64  `json:"files_peak,omitempty" unit:"files" jsonschema:"Most files at one time: all but directories, each once, also with several hard links."`
	Bytes       *uint64  `json:"bytes_peak,omitempty" unit:"bytes" jsonschema:"Most bytes of the disk at one time, by blocks: of sparse files what was written."`
}

// Process is one process with its own account: without its children.
type Process struct {
	PID             int      `json:"pid" jsonschema:"Process id."`
	Parent          int      `json:"parent" jsonschema:"Process that started it."`
	Node            string   `json:"node,omitempty" jsonschema:"Node that it ran on, where they are several."`
	Name            string   `json:"name,omitempty" jsonschema:"Name that the kernel had for it at its end, up to 15 characters."`
	StartSeconds    float64  `json:"start_seconds" unit:"seconds" jsonschema:"When it began, from the account's start."`
	WallSeconds     float64  `json:"wall_seconds" unit:"seconds" jsonschema:"How long it lived, up to the account's end."`
	Left            bool     `json:"left,omitempty" jsonschema:"It was alive at the account's end."`
	Exit            *Exit    `json:"exit,omitempty" jsonschema:"How it ended; absent if it had not."`
	Threads         *uint64  `json:"threads,omitempty" unit:"threads" jsonschema:"Threads that it had in all."`
	CPUSeconds      *float64 `json:"cpu_seconds,omitempty" unit:"seconds" jsonschema:"Its CPU time."`
	UserSeconds     *float64 `json:"user_seconds,omitempty" unit:"seconds" jsonschema:"Its CPU time outside the kernel."`
	SystemSeconds   *float64 `json:"system_seconds,omitempty" unit:"seconds" jsonschema:"Its CPU time in the kernel."`
	Memory          Memory   `json:"memory" jsonschema:"Its memory: peaks of the process alone."`
	IO              IO       `json:"io" jsonschema:"Its bytes and calls."`
	ContextSwitches Switches `json:"context_switches" jsonschema:"How often its threads gave up a CPU."`
	Faults          Faults   `json:"faults" jsonschema:"Its page faults."`
}

// Snapshot is what there was when an event came.
type Snapshot struct {
	Label string `json:"label" jsonschema:"The file that appeared, or the line that was written."`
	At    Row    `json:"at" jsonschema:"What there was at the first look after it, as in a line of the time series."`
}

// Moment is a span of the history.
type Moment struct {
	Seconds  float64 `json:"seconds" unit:"seconds" jsonschema:"Its end, from the account's start."`
	Span     float64 `json:"span_seconds" unit:"seconds" jsonschema:"How long it is."`
	Cores    float64 `json:"cores" unit:"cores" jsonschema:"CPU time by wall time in it, of all processes."`
	Resident uint64  `json:"resident_bytes" unit:"bytes" jsonschema:"Most resident memory of all processes at one time in it; pages that several share count for each."`
}

// Series tells of a time series.
type Series struct {
	Path         string  `json:"path" jsonschema:"File of lines of JSON, or of comma-separated values, one for each time."`
	EverySeconds float64 `json:"every_seconds" unit:"seconds" jsonschema:"Time between two lines that was asked for."`
	Rows         uint64  `json:"rows" unit:"lines" jsonschema:"Lines that were written."`
}

// Cost is what the accounting took beside the command.
type Cost struct {
	CPUSeconds      *float64 `json:"cpu_seconds,omitempty" unit:"seconds" jsonschema:"CPU time of the accounting process."`
	MemoryPeakBytes *uint64  `json:"memory_peak_bytes,omitempty" unit:"bytes" jsonschema:"Its resident memory at its most."`
	LostEvents      uint64   `json:"lost_events" unit:"events" jsonschema:"Events of processes that were lost; what they would have told is then a bound."`
}
