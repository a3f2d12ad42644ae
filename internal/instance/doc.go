// SPDX-License-Identifier: Apache-2.0

// Package instance has a service run once.
package instance
