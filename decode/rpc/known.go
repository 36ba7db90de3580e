package rpc

import (
	"bytes"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs3"
)

// known takes out of the File what was not read: fields behind the place at which decoding failed are zero, and so one that is not zero shows
// that those before it were read.
func (v *View) known() {
	f := &v.file
	if v.ArgsErr != nil {
		if len(bytes.Trim(f.Handle, "\x00")) == 0 { // those of NFSv2 have 32 bytes, whether they were read or not
			f.Handle = nil
		}
		if f.HasRange && f.Count == 0 { // the count is behind the offset
			f.HasRange, f.Offset = false, 0
		}
		if a, ok := v.Args().(*nfs3.WRITE3args); ok && a.Stable == 0 && a.Data.Length == 0 {
			f.Stable = ""
		}
	}
	if v.ResultErr != nil && f.HasMoved && f.Moved == 0 {
		f.HasMoved, f.EOF = false, false
	}
}
