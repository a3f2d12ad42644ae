// SPDX-License-Identifier: Apache-2.0

// Code generated for TestRoomsAreMeasured; DO NOT EDIT.

package testdata
