// SPDX-License-Identifier: Apache-2.0

// Package account is the record of what a command and all its processes took:
// time, memory, bytes, processes. [Account] is the JSON document, [Fields] lists
// what is in it, and docs/reference/account.md and account.schema.json are made
// from these.
//
// A number that was not measured is absent, never 0. [Account.Accuracy] says of
// each number that is there how it is to be read, [Account.Missing] why one is not.
//
// An Account is a plain value: whoever has it may read it from several goroutines.
package account
