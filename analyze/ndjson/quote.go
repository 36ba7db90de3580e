package ndjson

import "github.com/rpcrdma/toolkit/internal/printable"

// Quote appends s as a JSON string, with characters that are not to be shown as
// they are escaped as \uXXXX: see package printable. What is not UTF-8 becomes
// U+FFFD.
func Quote(b []byte, s string) []byte { return printable.JSON(b, s) }

// QuoteBytes appends bytes that ought to be UTF-8 as Quote does.
func QuoteBytes(b, s []byte) []byte { return printable.JSON(b, s) }
