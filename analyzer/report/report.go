// SPDX-License-Identifier: Apache-2.0

package report

import (
	"time"

	"github.com/attune-hpc/attune/internal/account"
)

// SchemaID names the layout of the JSON document. Fields are added under the
// same name; a change of meaning makes a new one.
const SchemaID = "attune.report/1"

// Report is the account of one session. All slices are non-nil in a report
// that a session made. The tags are the documentation of the JSON schema.
type Report struct {
	Schema      string           `json:"schema" jsonschema:"Layout of this document: attune.report/1."`
	Version     string           `json:"version" jsonschema:"Version of Attune."`
	Command     []string         `json:"command" jsonschema:"Command line as the owner gave it."`
	JobID       string           `json:"job_id,omitempty" jsonschema:"Id of the job, as its processes carry it."`
	Mode        string           `json:"mode" jsonschema:"observe, advise or tune."`
	StartedAt   time.Time        `json:"started_at" jsonschema:"When the session started."`
	WallSeconds float64          `json:"wall_seconds" jsonschema:"Time from the session's start to the end of the command, as far as that is known, else to this report, seconds."`
	Finished    bool             `json:"finished" jsonschema:"Whether the command had ended; false in a report written before that."`
	Exit        Exit             `json:"exit" jsonschema:"How the command ended."`
	Account     *account.Account `json:"account,omitempty" jsonschema:"What the command and all its processes took, as docs/reference/account.md describes it; absent where nobody accounted for them."`
	Processes   []Process        `json:"processes" jsonschema:"Processes of the job in the order in which they were seen."`
	Tunlets     []Tunlet         `json:"tunlets" jsonschema:"Tunlets that were to watch the job, also those that could not."`
	Objective   *OwnObjective    `json:"objective,omitempty" jsonschema:"What the owner wants to be better (--objective), by which all changes are judged; absent: each tunlet's own objective judges its changes."`
	Points      []Point          `json:"points" jsonschema:"Measure points, one entry per point and state."`
	Changes     []Change         `json:"changes" jsonschema:"Changes that were made or tried, in the order of their proposals."`
	Advice      []Advice         `json:"advice" jsonschema:"Changes that were recommended instead of made."`
	Refused     []Refused        `json:"refused" jsonschema:"Proposals that were not carried out."`
	Events      Events           `json:"events" jsonschema:"What was received and what was lost on the way."`
	Overhead    Overhead         `json:"overhead" jsonschema:"What watching and tuning cost."`
	Remarks     []Remark         `json:"remarks" jsonschema:"Remarks of tunlets and of Attune itself."`
}

// Exit tells how the command ended: at most one of the fields is set.
type Exit struct {
	Code   *int   `json:"code,omitempty" jsonschema:"Exit code, if it exited."`
	Signal string `json:"signal,omitempty" jsonschema:"Signal that killed it, e.g. SIGTERM."`
}

// ShortLived is why a process was not instrumented that ended too early.
const ShortLived = "too short-lived to be looked into"

// Process is one process image of the job.
type Process struct {
	PID             int      `json:"pid" jsonschema:"Process id on its host."`
	ParentPID       int      `json:"parent_pid,omitempty" jsonschema:"Process id of the parent."`
	Host            string   `json:"host,omitempty" jsonschema:"Host name."`
	Exe             string   `json:"exe" jsonschema:"Path of the executable."`
	SHA256          string   `json:"sha256,omitempty" jsonschema:"SHA-256 of the executable, hex; absent if it could not be read."`
	Rank            *int     `json:"rank,omitempty" jsonschema:"MPI rank, where known."`
	StartedSeconds  float64  `json:"started_seconds" jsonschema:"When it was seen first, seconds since the session's start."`
	EndedSeconds    *float64 `json:"ended_seconds,omitempty" jsonschema:"When it ended or replaced its image; absent if it was still running, as far as is known."`
	Exit            *Exit    `json:"exit,omitempty" jsonschema:"How it ended, where the kernel told."`
	ReplacedByExec  bool     `json:"replaced_by_exec,omitempty" jsonschema:"The pid lived on with another image."`
	Instrumented    bool     `json:"instrumented" jsonschema:"Whether anything beyond /proc could watch it."`
	Mechanisms      []string `json:"mechanisms" jsonschema:"Ways in that were open: dmlib, got, uprobe, proc, vm_write."`
	NotInstrumented string   `json:"not_instrumented,omitempty" jsonschema:"Why it was not instrumented, or not by every mechanism."`
}

// Tunlet is one tunlet of the session.
type Tunlet struct {
	Name          string `json:"name" jsonschema:"Name, as in --tunlet NAME."`
	Version       string `json:"version,omitempty" jsonschema:"Version; absent if it never answered."`
	Summary       string `json:"summary,omitempty" jsonschema:"What problem it solves."`
	Path          string `json:"path,omitempty" jsonschema:"Its binary."`
	SHA256        string `json:"sha256,omitempty" jsonschema:"SHA-256 of the binary, hex."`
	State         string `json:"state" jsonschema:"asleep (it was never of use), starting, running, restarting, stopped, quarantined, refused or missing."`
	Reason        string `json:"reason,omitempty" jsonschema:"Why it is in that state, or what the last failure was."`
	Restarts      int    `json:"restarts" jsonschema:"How often it was started again."`
	PeakRSSBytes  uint64 `json:"peak_rss_bytes,omitempty" jsonschema:"Greatest resident memory, bytes, of any of its processes."`
	EventsDropped uint64 `json:"events_dropped" jsonschema:"Events it did not get because it was too slow."`
}

// Change is one change in one process.
type Change struct {
	ID             string     `json:"id" jsonschema:"Id within the session."`
	Tunlet         string     `json:"tunlet" jsonschema:"Tunlet that proposed it."`
	Proposal       string     `json:"proposal" jsonschema:"Proposal that it belongs to; its changes are judged together."`
	Advice         string     `json:"advice" jsonschema:"Id of the recommendation, the same in another run."`
	Process        int        `json:"process" jsonschema:"Process id."`
	Host           string     `json:"host,omitempty" jsonschema:"Host of the process."`
	Rank           *int       `json:"rank,omitempty" jsonschema:"MPI rank, where known."`
	Knob           string     `json:"knob" jsonschema:"What was changed."`
	Action         string     `json:"action" jsonschema:"How it was changed."`
	Old            Value      `json:"old" jsonschema:"Value before; null if it cannot be known."`
	New            Value      `json:"new" jsonschema:"Value read back afterwards, or the value asked for; null for a call."`
	SafePoint      string     `json:"safe_point,omitempty" jsonschema:"Where it was executed."`
	ProposedAt     float64    `json:"proposed_seconds" jsonschema:"When it was proposed, seconds since the session's start."`
	AppliedAt      *time.Time `json:"applied_at,omitempty" jsonschema:"When it took effect; absent if it did not."`
	AppliedSeconds *float64   `json:"applied_seconds,omitempty" jsonschema:"The same in seconds since the session's start."`
	UndoneSeconds  *float64   `json:"undone_seconds,omitempty" jsonschema:"When the original value was back; absent if it is not."`
	StoppedSeconds float64    `json:"stopped_seconds" jsonschema:"How long the process was stopped for it, seconds."`
	Objective      *Objective `json:"objective,omitempty" jsonschema:"Objective before and after; absent if nothing was compared."`
	PredictedGain  float64    `json:"predicted_gain,omitempty" jsonschema:"Gain that the tunlet's model predicted (4 = four times); absent if none."`
	Prediction     string     `json:"prediction,omitempty" jsonschema:"How that compares with the measured gain: holds (within a factor of two between the logarithms), too_high, too_low, or wrong (a loss); absent if one of them is not known. Models that do not hold are to be corrected."`
	Why            string     `json:"why,omitempty" jsonschema:"The tunlet's reason for the proposal."`
	Verdict        string     `json:"verdict" jsonschema:"kept, undone, refused (nothing was changed), failed, or unjudged when the process or the session ended first."`
	Reason         string     `json:"reason" jsonschema:"Reason of the verdict."`
}

// The verdicts on a change.
const (
	// VerdictKept: measured to be good; Reason tells how.
	VerdictKept = "kept"
	// VerdictUndone: the original value is back.
	VerdictUndone = "undone"
	// VerdictRefused: it would not have been safe there, and nothing was changed.
	VerdictRefused = "refused"
	// VerdictFailed: it could not be applied, or not be undone.
	VerdictFailed = "failed"
	// VerdictUnjudged: there was no time for a verdict.
	VerdictUnjudged = "unjudged"
)

// OwnObjective is what the owner wants to be better, and what was measured of it.
type OwnObjective struct {
	Name          string   `json:"name" jsonschema:"Name, as the owner gave it, or what is looked for."`
	Unit          string   `json:"unit,omitempty" jsonschema:"Unit: 1/s; absent of a number that is taken as it is."`
	Description   string   `json:"description" jsonschema:"What is measured."`
	LowerIsBetter bool     `json:"lower_is_better" jsonschema:"Whether less is better."`
	Values        int      `json:"values" jsonschema:"How many values there were."`
	Mean          *float64 `json:"mean,omitempty" jsonschema:"Mean over the whole time from the first value to the last; absent without any."`
	Latest        *float64 `json:"latest,omitempty" jsonschema:"The last value; absent without any."`
}

// Objective compares what a change is judged by.
type Objective struct {
	Own           bool     `json:"own,omitempty" jsonschema:"It is the owner's objective, which outranks the tunlet's."`
	Name          string   `json:"name" jsonschema:"Name of the objective."`
	Unit          string   `json:"unit" jsonschema:"Its unit."`
	Scope         string   `json:"scope" jsonschema:"What it is about, in the tunlet's words."`
	LowerIsBetter bool     `json:"lower_is_better" jsonschema:"Whether less is better."`
	Before        Estimate `json:"before" jsonschema:"Before the change."`
	After         Estimate `json:"after" jsonschema:"After it."`
	Gain          *float64 `json:"gain,omitempty" jsonschema:"How many times better it is (above 1 better): the ratio of the medians of before and after; absent if it cannot be told: no baseline, too few events, or no progress at all before."`
	GainLow       *float64 `json:"gain_low,omitempty" jsonschema:"Lower end of the 95 % confidence interval of the gain, which has what the means say, too; absent if it cannot be told."`
	GainHigh      *float64 `json:"gain_high,omitempty" jsonschema:"Upper end of it; absent if there is none."`
	P             *float64 `json:"p,omitempty" jsonschema:"Probability of such a difference by chance, two-sided, by the test that decides (Mann-Whitney U; of many turns Wilcoxon's signed rank test, of a few Student's t; of counted events the score); absent without a comparison."`
	Turns         int      `json:"turns,omitempty" jsonschema:"How many pairs of turns, with and without the change, were compared; absent if before and after were compared once."`
	Events        int      `json:"events,omitempty" jsonschema:"Of what happens so seldom that it is counted: in how many windows it happened."`
	Windows       int      `json:"windows,omitempty" jsonschema:"In how many windows it was counted; absent of what is not counted."`
	TooFew        bool     `json:"too_few,omitempty" jsonschema:"There were too few events to compare."`
}

// Estimate is a level of an objective.
type Estimate struct {
	Median  float64  `json:"median" jsonschema:"Of one comparison the median; of turns the level that fits their pairs of neighbours best; of counted events the mean."`
	Low     *float64 `json:"low,omitempty" jsonschema:"Lower end of the median's 95 % confidence interval; absent of turns, of counted events and with fewer than 6 samples."`
	High    *float64 `json:"high,omitempty" jsonschema:"Upper end of it."`
	Samples int      `json:"samples" jsonschema:"Number of samples."`
}

// Advice is one recommendation.
type Advice struct {
	ID            string   `json:"id" jsonschema:"Stable id: the same recommendation has it in another run."`
	Tunlet        string   `json:"tunlet" jsonschema:"Tunlet that gives it."`
	Actions       []string `json:"actions" jsonschema:"What to change, one line each."`
	Processes     []int    `json:"processes" jsonschema:"Processes that it was given for."`
	Why           string   `json:"why" jsonschema:"The tunlet's reason, with its figures."`
	PredictedGain float64  `json:"predicted_gain,omitempty" jsonschema:"Gain that its model predicts; absent if none."`
	Confidence    float64  `json:"confidence" jsonschema:"How sure the tunlet is, 0 to 1."`
	Seconds       float64  `json:"seconds" jsonschema:"When it was given, seconds since the session's start."`
}

// Refused is one proposal that was not carried out.
type Refused struct {
	Tunlet   string   `json:"tunlet" jsonschema:"Tunlet that proposed it."`
	Proposal string   `json:"proposal" jsonschema:"The tunlet's id of it."`
	Actions  []string `json:"actions" jsonschema:"What it asked for, one line each."`
	Reason   string   `json:"reason" jsonschema:"Why it was refused."`
	Times    int      `json:"times" jsonschema:"How often it was refused."`
	Seconds  float64  `json:"seconds" jsonschema:"When it came first, seconds since the session's start."`
}

// Events counts what came through the event channel.
type Events struct {
	Received   uint64 `json:"received" jsonschema:"Records, aggregates and samples received by the Analyzer."`
	Records    uint64 `json:"records" jsonschema:"Records among them."`
	Aggregates uint64 `json:"aggregates" jsonschema:"Aggregates of one point, process and interval among them."`
	Samples    uint64 `json:"samples" jsonschema:"Samples of one process among them."`
	Hits       uint64 `json:"hits" jsonschema:"Hits of measure points that the aggregates stand for."`
	Lost       Lost   `json:"lost" jsonschema:"Events lost, per stage."`
}

// Lost counts lost events per stage.
type Lost struct {
	Ring     uint64 `json:"ring" jsonschema:"Lost in the application: a ring was full."`
	Slot     uint64 `json:"slot" jsonschema:"Lost in the application: a thread found no slot."`
	Queue    uint64 `json:"queue" jsonschema:"Records lost in the Application Controller's queue, which was full, or with a connection to the Analyzer that broke, as exactly as those of away."`
	BPF      uint64 `json:"bpf" jsonschema:"Lost in the kernel: the BPF ring buffer was full, or an end of a call was missed."`
	Away     uint64 `json:"away" jsonschema:"Hits in aggregates, samples, and ends of processes that did not reach the Analyzer: its connection to the Application Controller broke, or there was none. Never too few; what it took in the last second before, or in the last 64 messages, may count as lost."`
	Analyzer uint64 `json:"analyzer" jsonschema:"Lost in the Analyzer: its queue was full."`
	Tunlet   uint64 `json:"tunlet" jsonschema:"Not delivered to a tunlet that was too slow, over all tunlets."`
}

// Total returns the losses of all stages together.
func (l Lost) Total() uint64 {
	return l.Ring + l.Slot + l.Queue + l.BPF + l.Away + l.Analyzer + l.Tunlet
}

// ByPlace returns the losses by stage, under their names in the report.
func (l Lost) ByPlace() map[string]uint64 {
	return map[string]uint64{
		"ring": l.Ring, "slot": l.Slot, "queue": l.Queue, "bpf": l.BPF, "away": l.Away, "analyzer": l.Analyzer, "tunlet": l.Tunlet,
	}
}

// Overhead is what watching and tuning cost.
type Overhead struct {
	CPUSeconds           float64 `json:"cpu_seconds" jsonschema:"CPU time of all that Attune ran for the session: controllers, Analyzer and tunlets, seconds."`
	ControllerCPUSeconds float64 `json:"controller_cpu_seconds" jsonschema:"CPU time of the Application Controllers, in attune run of attune itself, with controller and Analyzer, seconds."`
	TunletCPUSeconds     float64 `json:"tunlet_cpu_seconds" jsonschema:"CPU time of the tunlets' processes, their starts included, seconds."`
	ProgramCPUSeconds    float64 `json:"program_cpu_seconds,omitempty" jsonschema:"CPU time of the command, with all that it started and waited for, seconds; absent where attune did not start it."`
	MemoryPeakBytes      uint64  `json:"memory_peak_bytes" jsonschema:"Greatest resident memory of a controller, in attune run together with the Analyzer, bytes."`
	TunletPeakBytes      uint64  `json:"tunlet_peak_bytes" jsonschema:"Greatest resident memory of a tunlet's process, bytes."`
	TunletMemoryBytes    uint64  `json:"tunlet_memory_bytes" jsonschema:"Greatest resident memory of all tunlets' processes together, bytes."`
	ProbeSeconds         float64 `json:"probe_seconds" jsonschema:"Estimated time that measure points took in the application, seconds."`
}

// Remark is a sentence for people.
type Remark struct {
	Seconds float64 `json:"seconds" jsonschema:"When, seconds since the session's start."`
	From    string  `json:"from" jsonschema:"Tunlet, or attune."`
	Process int     `json:"process,omitempty" jsonschema:"Process id that it is about."`
	Text    string  `json:"text" jsonschema:"The sentence."`
}

// New returns an empty report: all slices are there.
func New() *Report {
	return &Report{
		Schema: SchemaID, Command: []string{},
		Processes: []Process{}, Tunlets: []Tunlet{}, Points: []Point{}, Changes: []Change{},
		Advice: []Advice{}, Refused: []Refused{}, Remarks: []Remark{},
	}
}
