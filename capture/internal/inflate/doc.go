// Package inflate decompresses gzip files (RFC 1952, RFC 1951), in half the time of the libraries for Go: a capture that
// is compressed is to be decoded as fast as pigz -dc writes it. What it accepts, and what comes out of it, is the same as
// that of compress/gzip; tests and a fuzz target compare them.
package inflate
