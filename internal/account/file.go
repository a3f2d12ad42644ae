// SPDX-License-Identifier: Apache-2.0

package account

// What File.Kind may be.
const (
	KindFile      = "file"
	KindDirectory = "directory"
	KindDevice    = "device"
	KindFIFO      = "fifo"
)

// What File.Access may be.
const (
	AccessRead  = "read"
	AccessWrite = "write"
	AccessBoth  = "read and write"
)

// File is a file that was used, however the process had come to it.
type File struct {
	Path         string   `json:"path" jsonschema:"Absolute path when it was first used, as the process saw it; it begins with ... if it is not whole."`
	Kind         string   `json:"kind" jsonschema:"file, directory, device, or fifo."`
	Access       string   `json:"access,omitempty" jsonschema:"What it was open or mapped for, where bytes and calls are not known: read, write, or read and write."`
	Read         *uint64  `json:"read_bytes,omitempty" unit:"bytes" jsonschema:"Bytes that system calls read of it."`
	Written      *uint64  `json:"written_bytes,omitempty" unit:"bytes" jsonschema:"Bytes that system calls wrote to it."`
	ReadCalls    *uint64  `json:"read_calls,omitempty" unit:"calls" jsonschema:"System calls that did, those at the file's end as well."`
	WrittenCalls *uint64  `json:"written_calls,omitempty" unit:"calls" jsonschema:"System calls that did."`
	MovedFrom    *uint64  `json:"moved_from_bytes,omitempty" unit:"bytes" jsonschema:"Of read_bytes, those that sendfile, splice and copy_file_range moved on."`
	MovedTo      *uint64  `json:"moved_to_bytes,omitempty" unit:"bytes" jsonschema:"Of written_bytes, those that sendfile, splice and copy_file_range moved here."`
	Opens        *uint64  `json:"opens,omitempty" unit:"calls" jsonschema:"How often it was opened by system calls."`
	Executions   *uint64  `json:"executions,omitempty" unit:"calls" jsonschema:"How often it was executed; of a script its interpreter is."`
	Maps         *uint64  `json:"maps,omitempty" unit:"calls" jsonschema:"How often mmap mapped it: what is read and written through memory is in faults and storage bytes, and in none of these."`
	Inodes       []uint64 `json:"-"` // of the files that had the path, one after another
	Mapped       *uint64  `json:"mapped_bytes,omitempty" unit:"bytes" jsonschema:"Address space that these calls asked for: as much of the file could be reached through memory, more than once where it was mapped more than once."`
}

// WasRead says whether something read the file, or was about to.
func (f *File) WasRead() bool {
	return f.Read != nil && *f.Read > 0 || f.Access == AccessRead || f.Access == AccessBoth
}

// WasWritten says whether something wrote to the file, or was about to.
func (f *File) WasWritten() bool {
	return f.Written != nil && *f.Written > 0 || f.Access == AccessWrite || f.Access == AccessBoth
}
