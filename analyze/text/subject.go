package text

import "github.com/rpcrdma/toolkit/decode/rpc"

// Subject appends what a transaction is about, as in the listing but in full:
// file, range, new name; nothing if it is about no file.
func Subject(b []byte, v *rpc.View) []byte {
	var s Lister
	l := line{b: b}
	s.file(&l, v, 1<<30)
	return l.b
}
