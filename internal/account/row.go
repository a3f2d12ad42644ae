// SPDX-License-Identifier: Apache-2.0

package account

// Row is one line of a time series, with what was at one moment. Totals are from
// the start to it.
type Row struct {
	Seconds        float64  `json:"seconds" unit:"seconds" jsonschema:"Time from the account's start."`
	CPUSeconds     float64  `json:"cpu_seconds" unit:"seconds" jsonschema:"CPU time of all processes until now."`
	Cores          *float64 `json:"cores,omitempty" unit:"cores" jsonschema:"CPU time by wall time since the line before."`
	Processes      uint64   `json:"processes" unit:"processes" jsonschema:"Processes that are alive."`
	Resident       uint64   `json:"resident_bytes" unit:"bytes" jsonschema:"Their resident memory; pages that several share count for each."`
	Anonymous      uint64   `json:"anonymous_bytes" unit:"bytes" jsonschema:"Their resident memory that no file is behind."`
	Virtual        uint64   `json:"virtual_bytes" unit:"bytes" jsonschema:"Their address space."`
	Cgroup         *uint64  `json:"cgroup_bytes,omitempty" unit:"bytes" jsonschema:"What the control group is charged with."`
	Read           uint64   `json:"read_bytes" unit:"bytes" jsonschema:"Bytes that system calls read until now."`
	Written        uint64   `json:"written_bytes" unit:"bytes" jsonschema:"Bytes that system calls wrote until now."`
	StorageRead    uint64   `json:"storage_read_bytes" unit:"bytes" jsonschema:"Bytes fetched from storage until now."`
	StorageWritten uint64   `json:"storage_written_bytes" unit:"bytes" jsonschema:"Bytes that are to go to storage until now."`
	Disk           *uint64  `json:"disk_bytes,omitempty" unit:"bytes" jsonschema:"Footprint of the directories, as of the last walk."`
	DiskFiles      *uint64  `json:"disk_files,omitempty" unit:"files" jsonschema:"Files in it."`
}
