// SPDX-License-Identifier: Apache-2.0

// Package imports reads accounts of tasks that others wrote, and Attune's own, into tasks
// of an archive:
//
//	attune     JSON of attune account --json and attune archive export
//	cctools    summaries of cctools' resource_monitor
//	kickstart  records of pegasus-kickstart, schema 3.0
//	slurm      the output of sacct --parsable2
//	nextflow   traces of Nextflow, with tabs or commas, raw or for people
//	time       the output of GNU time -v
//
// What a format does not tell is absent in the account, and what it tells of less than the
// whole task, such as the largest process only, is marked as a bound. A file is read whole
// or not at all: the error says where it is not as it should be, and what to do.
//
// The functions are pure, and safe for concurrent use.
package imports
