// Package ledger follows what a server must hold after the calls that it has said it has
// executed: the bytes of files (content.go), names in directories (names.go), sizes, modes
// and the times that a client has set (attributes.go). What is not known is left open, and
// so is what several calls have changed that were under way together. It keeps ranges and
// where their bytes come from, never the bytes.
//
// account.go tells how many of the bytes that were written have been compared since.
package ledger
