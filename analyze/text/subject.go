package text

import "github.com/rpcrdma/toolkit/decode/rpc"

// Subject appends the subject of a transaction as in the listing, but in full: file, range, new name. It
// appends nothing if there is no file.
func Subject(b []byte, v *rpc.View) []byte {
	var path []byte
	b, _ = subject(b, &path, v, 1<<30)
	return b
}
