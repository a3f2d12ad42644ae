// SPDX-License-Identifier: Apache-2.0

package account

import "time"

// Provenance is what must be known to understand where results came from, and to make
// them again.
type Provenance struct {
	Executable  *DataFile         `json:"executable,omitempty" jsonschema:"File that was executed: a program or a script."`
	Inputs      []DataFile        `json:"inputs,omitempty" jsonschema:"Files that were read: declared with --input, or found."`
	Outputs     []DataFile        `json:"outputs,omitempty" jsonschema:"Files that were written: declared with --output, or found."`
	Environment map[string]string `json:"environment,omitempty" jsonschema:"Environment variables of the command. Values that may be secrets are [redacted]."`
	Redacted    []string          `json:"redacted,omitempty" jsonschema:"Names of the variables whose values, or parts of them, are [redacted]."`
	User        User              `json:"user" jsonschema:"Who ran the command."`
	Machine     Machine           `json:"machine" jsonschema:"More of the machine than host has."`
	Jobs        map[string]string `json:"jobs,omitempty" jsonschema:"Ids of the batch systems' jobs that the command is in, by the variables that hold them."`
	Limits      map[string]Bounds `json:"limits,omitempty" jsonschema:"Resource limits of the command at its start, by the names of getrlimit(2)."`
	Stdout      *Captured         `json:"stdout,omitempty" jsonschema:"Standard output, if it was to be captured."`
	Stderr      *Captured         `json:"stderr,omitempty" jsonschema:"Standard error, if it was to be captured."`
}

// DataFile is a file as it was when the command had ended.
type DataFile struct {
	Path      string    `json:"path" jsonschema:"Absolute path."`
	Bytes     uint64    `json:"size_bytes" unit:"bytes" jsonschema:"Its size."`
	SHA256    string    `json:"sha256,omitempty" jsonschema:"Checksum of its content, in hex; absent for what is no regular file."`
	Modified  time.Time `json:"modified,omitzero" jsonschema:"When its content was last changed."`
	Directory bool      `json:"directory,omitempty" jsonschema:"It is a directory."`
	Changed   bool      `json:"changed,omitempty" jsonschema:"An input that was written to, or replaced, since the command's start: what the command read may have been something else."`
	Found     bool      `json:"found,omitempty" jsonschema:"It was not declared: the command opened it."`
	Missing   string    `json:"missing,omitempty" jsonschema:"Why nothing, or no checksum, is known of it."`
}

// User is who ran a command.
type User struct {
	ID    int    `json:"id" jsonschema:"User id."`
	Name  string `json:"name,omitempty" jsonschema:"User name."`
	Group int    `json:"group_id" jsonschema:"Group id."`
	Umask string `json:"umask,omitempty" jsonschema:"Permissions that new files do not get, in octal."`
}

// Machine is what a machine is made of.
type Machine struct {
	Architecture string `json:"architecture,omitempty" jsonschema:"Architecture, as uname(2) has it."`
	System       string `json:"system,omitempty" jsonschema:"Name and release of the operating system, of os-release(5)."`
	CPU          string `json:"cpu,omitempty" jsonschema:"Model of the CPUs."`
	CPUs         int    `json:"cpus,omitempty" unit:"CPUs" jsonschema:"CPUs of the machine."`
	PageBytes    int    `json:"page_bytes,omitempty" unit:"bytes" jsonschema:"Size of a page."`
}

// Bounds are a resource limit.
type Bounds struct {
	Soft *uint64 `json:"soft,omitempty" jsonschema:"Limit in force; absent if there is none."`
	Hard *uint64 `json:"hard,omitempty" jsonschema:"Limit up to which the other can be raised; absent if there is none."`
}

// Captured is what was written to a standard stream.
type Captured struct {
	Text      string `json:"text,omitempty" jsonschema:"What was written, or its end, if it is UTF-8."`
	Base64    []byte `json:"base64,omitempty" jsonschema:"The same if it is not."`
	Bytes     uint64 `json:"written_bytes" unit:"bytes" jsonschema:"How much was written."`
	Truncated bool   `json:"truncated,omitempty" jsonschema:"Only the end is here."`
	Missing   string `json:"missing,omitempty" jsonschema:"Why it was not captured."`
}
