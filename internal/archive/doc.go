// SPDX-License-Identifier: Apache-2.0

// Package archive keeps the accounts of tasks, and says what the next one will need.
//
// A [Task] is an [account.Account] with what is known of it from elsewhere: what was asked
// for, the size of its input, who wrote it down. Tasks of one kind are those of one
// category: the same program by checksum, with the same arguments but for numbers and
// names of files ([Pattern]); or they have the same name.
//
// An archive is one SQLite file (modernc.org/sqlite, no C), by default in the user's
// state directory, and its owner alone can read it; or it is in the database of a site's
// PostgreSQL server (jackc/pgx). What is added is added whole or not at all. A task that is
// there already is not added again: its id is the checksum of what is known of it. There is
// a bound on the size of the file; beyond it the oldest tasks go. The statements are the
// same for both; engine has what differs.
//
// A Store is safe for use by several goroutines, and its archive by several processes; each
// call waits at most busyTimeout for another process that writes.
package archive
