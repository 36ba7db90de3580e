// Package expected follows what a server must hold after the calls that it has acknowledged: the
// bytes of files (content.go), names in directories (names.go), sizes, modes and the times that a
// client has set (attributes.go). Unknown content is left open, and so are the results of
// concurrent calls. It keeps ranges and where their bytes come from, never the bytes.
//
// account.go counts how many of the written bytes have been compared since.
package expected
