// SPDX-License-Identifier: Apache-2.0

package metrics

// What both services have.
var (
	BuildInfo = &Metric{
		Name: "attune_build_info", Kind: Gauge, Help: "Version of the service; the value is 1.",
		Labels: []Label{{Name: "version"}, {Name: "commit"}, {Name: "goversion"}},
	}
	CertificateExpiry = &Metric{
		Name: "attune_certificate_expiry_timestamp_seconds", Kind: Gauge, Help: "When the service's certificate ends, Unix time.",
		Sometimes: "where the service has a certificate",
	}
	CertificateStart = &Metric{
		Name: "attune_certificate_start_timestamp_seconds", Kind: Gauge, Help: "When the service's certificate began to hold, Unix time.",
		Sometimes: "where the service has a certificate",
	}
	RegistryConnected = &Metric{
		Name: "attune_registry_connected", Kind: Gauge, Help: "Whether the registry can be reached.",
	}
	AuditTrouble = &Metric{
		Name: "attune_audit_trouble", Kind: Gauge, Help: "Whether lines of the audit log cannot be written to disk.",
	}
	AuditLost = &Metric{
		Name: "attune_audit_lines_lost_total", Kind: Counter, Help: "Lines of the audit log that were lost because the disk took none.",
	}
	StateAvailable = &Metric{
		Name: "attune_state_available_bytes", Kind: Gauge, Help: "Room on the disk of the state directory.",
	}
	LoopIdle = &Metric{
		Name: "attune_loop_idle_seconds", Kind: Gauge, Help: "Time since a loop of the service came round last; of all sessions' the longest.",
		Sometimes: "when the loop has begun",
		Labels:    []Label{{Name: "loop"}},
	}
	LoopsStanding = &Metric{
		Name: "attune_loops_standing", Kind: Gauge, Help: "Loops that have not come round for longer than they may.",
	}
	ProcessCPU = &Metric{
		Name: "attune_process_cpu_seconds_total", Kind: Counter, Help: "CPU time of the service's own process.",
	}
	ProcessMemory = &Metric{
		Name: "attune_process_resident_memory_bytes", Kind: Gauge, Help: "Resident memory of the service's own process.",
	}
	ProcessFiles = &Metric{
		Name: "attune_process_open_fds", Kind: Gauge, Help: "Descriptors that the service's own process has open.",
	}
	ProcessMaxFiles = &Metric{
		Name: "attune_process_max_fds", Kind: Gauge, Help: "Descriptors that it may have open.",
	}
	ProcessStart = &Metric{
		Name: "attune_process_start_time_seconds", Kind: Gauge, Help: "When the service was started, Unix time.",
	}
)

var common = []*Metric{
	BuildInfo, CertificateExpiry, CertificateStart, RegistryConnected, AuditTrouble, AuditLost, StateAvailable, LoopIdle, LoopsStanding,
	ProcessCPU, ProcessMemory, ProcessFiles, ProcessMaxFiles, ProcessStart,
}

// Why attuned leaves a process alone.
const (
	RefusedPolicy   = "policy"
	RefusedRights   = "rights"
	RefusedOff      = "switched_off"
	RefusedEnded    = "session_ended"
	RefusedGivenUp  = "sessions_given_up"
	RefusedTooMany  = "too_many_sessions"
	RefusedWaiting  = "too_many_waiting"
	RefusedTaken    = "other_session"
	RefusedStopping = "stopping"
	RefusedTunlets  = "unknown_tunlet"
	// RefusedObjective: it is none, or would have a service execute a command.
	RefusedObjective = "objective"
	// RefusedTooLong: all that it asks for is longer than a registration may be.
	RefusedTooLong = "too_long"
)

// What becomes of a change. The Analyzer knows which was kept.
const (
	ChangeApplied = "applied"
	ChangeKept    = "kept"
	ChangeUndone  = "undone"
	ChangeRefused = "refused"
	ChangeFailed  = "failed"
)

// What attuned has.
var (
	PolicyOK = &Metric{
		Name: "attune_node_policy_ok", Kind: Gauge, Of: Node,
		Help: "Whether the policy could be used when it was read last; otherwise the last good one is in force, and without any nothing is touched.",
	}
	PolicySince = &Metric{
		Name: "attune_node_policy_state_timestamp_seconds", Kind: Gauge, Of: Node,
		Help: "When attune_node_policy_ok came to its value, Unix time.",
	}
	SwitchedOff = &Metric{
		Name: "attune_node_switched_off", Kind: Gauge, Of: Node, Help: "Whether Attune is switched off on the node.",
	}
	JournalWritable = &Metric{
		Name: "attune_node_journal_writable", Kind: Gauge, Of: Node,
		Help: "Whether undo journals can be written; otherwise nothing is changed any more.",
	}
	NodeSessions = &Metric{
		Name: "attune_node_sessions", Kind: Gauge, Of: Node, Help: "Sessions that have processes on the node.",
	}
	NodeProcesses = &Metric{
		Name: "attune_node_processes", Kind: Gauge, Of: Node, Help: "Processes under control.",
	}
	NodeConnections = &Metric{
		Name: "attune_node_connections", Kind: Gauge, Of: Node, Help: "Connections of the node's sessions to Analyzers.",
	}
	NodeTaken = &Metric{
		Name: "attune_node_processes_found_total", Kind: Counter, Of: Node, Help: "Processes that were found and taken.",
	}
	NodeRefused = &Metric{
		Name: "attune_node_processes_refused_total", Kind: Counter, Of: Node, Counts: true,
		Help: "Processes that were found or handed over, and left alone; one that is found again counts again.",
		Labels: []Label{{"reason", []string{
			RefusedPolicy, RefusedRights, RefusedOff, RefusedEnded, RefusedGivenUp, RefusedTooMany, RefusedWaiting, RefusedTaken, RefusedStopping, RefusedTunlets, RefusedObjective, RefusedTooLong,
		}}},
	}
	NodeEventsLost = &Metric{
		Name: "attune_node_process_events_lost_total", Kind: Counter, Of: Node,
		Help: "The kernel's events of processes that were lost; the processes are looked for in /proc.",
	}
	NodeSessionsLost = &Metric{
		Name: "attune_node_sessions_lost_total", Kind: Counter, Of: Node, Counts: true,
		Help: "Sessions that were given up because their process crashed, hung or took too much.",
	}
	NodeChanges = &Metric{
		Name: "attune_node_changes_total", Kind: Counter, Of: Node, Counts: true,
		Help:   "Answers of the node about changes, by what became of each.",
		Labels: []Label{{"result", []string{ChangeApplied, ChangeUndone, ChangeRefused, ChangeFailed, "gone", "overridden"}}},
	}
	NodeSessionsCPU = &Metric{
		Name: "attune_node_sessions_cpu_seconds_total", Kind: Counter, Of: Node, Counts: true,
		Help: "CPU time of the processes that serve sessions.",
	}
)

var node = []*Metric{
	PolicyOK, PolicySince, SwitchedOff, JournalWritable, NodeSessions, NodeProcesses, NodeConnections, NodeTaken, NodeRefused,
	NodeEventsLost, NodeSessionsLost, NodeChanges, NodeSessionsCPU,
}

// Why an Analyzer does not let a node's session begin.
const (
	RefusedShare = "share_of_user"
	RefusedOften = "too_often"
)

// Whose CPU time it is.
const (
	PartController = "controller"
	PartTunlet     = "tunlet"
)

// What the Analyzer has.
var (
	Sessions = &Metric{
		Name: "attune_analyzer_sessions", Kind: Gauge, Of: Analyzer, Help: "Sessions that the Analyzer has.",
	}
	SessionsBegun = &Metric{
		Name: "attune_analyzer_sessions_begun_total", Kind: Counter, Of: Analyzer, Counts: true,
		Help: "Sessions that have begun, or were taken over.",
	}
	SessionsRefused = &Metric{
		Name: "attune_analyzer_sessions_refused_total", Kind: Counter, Of: Analyzer, Counts: true,
		Help:   "Attempts of nodes to begin a session that were refused; a node tries again.",
		Labels: []Label{{"reason", []string{RefusedShare, RefusedOften, RefusedStopping}}},
	}
	Nodes = &Metric{
		Name: "attune_analyzer_nodes", Kind: Gauge, Of: Analyzer, Help: "Nodes that have told of themselves in the last 30 seconds.",
	}
	Connections = &Metric{
		Name: "attune_analyzer_connections", Kind: Gauge, Of: Analyzer, Help: "Connections of nodes and persons.",
	}
	Registrations = &Metric{
		Name: "attune_analyzer_registrations", Kind: Gauge, Of: Analyzer, Help: "What is registered at the site, jobs that were handed over included.",
	}
	RegistrationsOwned = &Metric{
		Name: "attune_analyzer_registrations_owned", Kind: Gauge, Of: Analyzer, Help: "Registrations that this Analyzer has.",
	}
	TunletProcesses = &Metric{
		Name: "attune_analyzer_tunlet_processes", Kind: Gauge, Of: Analyzer, Help: "Processes of tunlets.",
	}
	RegistryKeeps = &Metric{
		Name: "attune_analyzer_registry_keeps", Kind: Gauge, Of: Analyzer,
		Help:      "Whether the embedded registry keeps what it is told; otherwise its disk is full or has failed, or the other site's cannot be reached.",
		Sometimes: "where the registry is embedded",
	}
	RecordsOfSessionsLost = &Metric{
		Name: "attune_analyzer_session_records_lost_total", Kind: Counter, Of: Analyzer,
		Help: "Records of sessions that the registry did not get because it was away for long.",
	}
	ReportsLost = &Metric{
		Name: "attune_analyzer_reports_lost_total", Kind: Counter, Of: Analyzer, Counts: true, Help: "Reports of sessions that could not be written to disk.",
	}
	Changes = &Metric{
		Name: "attune_analyzer_changes_total", Kind: Counter, Of: Analyzer, Counts: true, Sometimes: "when there was a change",
		Help:   "Changes by the tunlet that proposed them and by what became of them: each that is applied is kept or undone later, or both, unless its process ends; to be taken back to compare does not count.",
		Labels: []Label{{Name: "tunlet"}, {"result", []string{ChangeApplied, ChangeKept, ChangeUndone, ChangeRefused, ChangeFailed}}},
	}
	Gain = &Metric{
		Name: "attune_analyzer_gain_ratio", Kind: Histogram, Of: Analyzer, Counts: true, Sometimes: "when something was kept",
		Help:   "Measured gains of proposals that were kept: 2 is twice as good.",
		Labels: []Label{{Name: "tunlet"}}, Buckets: []float64{1, 1.02, 1.05, 1.1, 1.2, 1.5, 2, 5, 10, 100},
	}
	SessionsCPU = &Metric{
		Name: "attune_analyzer_sessions_cpu_seconds_total", Kind: Counter, Of: Analyzer, Counts: true,
		Help:   "CPU time that sessions have taken of Attune's: of controllers on the nodes, and of tunlets.",
		Labels: []Label{{"part", []string{PartController, PartTunlet}}},
	}
	Received = &Metric{
		Name: "attune_analyzer_records_total", Kind: Counter, Of: Analyzer, Counts: true, Help: "Records, aggregates and samples that came.",
	}
	Lost = &Metric{
		Name: "attune_analyzer_records_lost_total", Kind: Counter, Of: Analyzer, Counts: true,
		Help:   "Records, aggregates and samples that were lost, by where: the words are those of the report.",
		Labels: []Label{{"place", []string{"ring", "slot", "queue", "bpf", "away", "analyzer", "tunlet"}}},
	}
)

var analyzer = []*Metric{
	Sessions, SessionsBegun, SessionsRefused, Nodes, Connections, Registrations, RegistrationsOwned, TunletProcesses, RegistryKeeps,
	RecordsOfSessionsLost, ReportsLost, Changes, Gain, SessionsCPU, Received, Lost,
}
