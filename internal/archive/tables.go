// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"slices"
	"strings"
)

// measures are the names, as in Task.Number, of the numbers of a task that have a column of
// their own, in the order of the columns. A test compares them with the numbers of an
// account: for a new one add it at the end, and a migration.
var measures = []string{
	"wall_seconds", "cpu_seconds", "user_seconds", "system_seconds", "cores_average", "cores_peak",
	"processes.total", "processes.peak", "processes.left",
	"memory.resident_peak_bytes", "memory.anonymous_peak_bytes", "memory.proportional_peak_bytes",
	"memory.virtual_peak_bytes", "memory.swap_peak_bytes", "memory.cgroup_peak_bytes",
	"io.read_bytes", "io.written_bytes", "io.read_calls", "io.written_calls", "io.storage_read_bytes",
	"io.storage_written_bytes", "io.network_received_bytes", "io.network_sent_bytes",
	"context_switches.voluntary", "context_switches.involuntary", "faults.minor", "faults.major",
	"disk.files_peak", "disk.bytes_peak",
	"input_bytes", "asked.memory_bytes", "asked.cores", "asked.wall_seconds", "asked.disk_bytes",
	"cpu_wait_seconds", "time.computing_seconds", "time.kernel_seconds", "time.cpu_wait_seconds", "time.disk_seconds", "time.network_seconds",
	"time.pipes_seconds", "time.events_seconds", "time.locks_seconds", "time.sleep_seconds", "time.other_seconds",
}

// Fields returns the names of all numbers that can be asked for.
func Fields() []string { return slices.Clone(measures) }

// column is the column of a field in the table of tasks.
func column(field string) string { return strings.ReplaceAll(field, ".", "_") }

// migrations make the tables, each from what the one before left; their number is the
// version, as PRAGMA user_version. What has been released is not changed any more.
//
// A document is apart from its numbers: these are read by the thousand.
var migrations = []string{`
CREATE TABLE task (
	number    INTEGER PRIMARY KEY, -- in the order in which they were added
	id        TEXT NOT NULL UNIQUE,
	name      TEXT NOT NULL,
	category  TEXT NOT NULL,
	pattern   TEXT NOT NULL,
	source    TEXT NOT NULL,
	job       TEXT NOT NULL,
	host      TEXT NOT NULL,
	ended     BIGINT NOT NULL,
	exit_type TEXT NOT NULL,
	exit_code INTEGER,
	wall_seconds DOUBLE PRECISION, cpu_seconds DOUBLE PRECISION, user_seconds DOUBLE PRECISION,
	system_seconds DOUBLE PRECISION, cores_average DOUBLE PRECISION, cores_peak DOUBLE PRECISION,
	processes_total DOUBLE PRECISION, processes_peak DOUBLE PRECISION, processes_left DOUBLE PRECISION,
	memory_resident_peak_bytes DOUBLE PRECISION, memory_anonymous_peak_bytes DOUBLE PRECISION,
	memory_proportional_peak_bytes DOUBLE PRECISION, memory_virtual_peak_bytes DOUBLE PRECISION,
	memory_swap_peak_bytes DOUBLE PRECISION, memory_cgroup_peak_bytes DOUBLE PRECISION,
	io_read_bytes DOUBLE PRECISION, io_written_bytes DOUBLE PRECISION, io_read_calls DOUBLE PRECISION,
	io_written_calls DOUBLE PRECISION, io_storage_read_bytes DOUBLE PRECISION,
	io_storage_written_bytes DOUBLE PRECISION, io_network_received_bytes DOUBLE PRECISION,
	io_network_sent_bytes DOUBLE PRECISION,
	context_switches_voluntary DOUBLE PRECISION, context_switches_involuntary DOUBLE PRECISION,
	faults_minor DOUBLE PRECISION, faults_major DOUBLE PRECISION,
	disk_files_peak DOUBLE PRECISION, disk_bytes_peak DOUBLE PRECISION,
	input_bytes DOUBLE PRECISION, asked_memory_bytes DOUBLE PRECISION, asked_cores DOUBLE PRECISION,
	asked_wall_seconds DOUBLE PRECISION, asked_disk_bytes DOUBLE PRECISION
);
CREATE INDEX task_by_end ON task (ended);
CREATE INDEX task_by_category ON task (category, ended);
CREATE INDEX task_by_name ON task (name, ended);
CREATE TABLE document (
	number INTEGER PRIMARY KEY, -- of the task
	body   BLOB NOT NULL        -- compressed by Zstandard
);
`, `
ALTER TABLE task ADD COLUMN cpu_wait_seconds DOUBLE PRECISION;
ALTER TABLE task ADD COLUMN time_computing_seconds DOUBLE PRECISION;
ALTER TABLE task ADD COLUMN time_kernel_seconds DOUBLE PRECISION;
ALTER TABLE task ADD COLUMN time_cpu_wait_seconds DOUBLE PRECISION;
ALTER TABLE task ADD COLUMN time_disk_seconds DOUBLE PRECISION;
ALTER TABLE task ADD COLUMN time_network_seconds DOUBLE PRECISION;
ALTER TABLE task ADD COLUMN time_pipes_seconds DOUBLE PRECISION;
ALTER TABLE task ADD COLUMN time_events_seconds DOUBLE PRECISION;
ALTER TABLE task ADD COLUMN time_locks_seconds DOUBLE PRECISION;
ALTER TABLE task ADD COLUMN time_sleep_seconds DOUBLE PRECISION;
ALTER TABLE task ADD COLUMN time_other_seconds DOUBLE PRECISION;
`}
