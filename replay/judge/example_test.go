package judge_test

import (
	"fmt"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs3"
	"github.com/rpcrdma/toolkit/replay/judge"
	"github.com/rpcrdma/toolkit/replay/plan"
	"github.com/rpcrdma/toolkit/replay/report"
	"github.com/rpcrdma/toolkit/replay/workload"
)

// The captured server returned a file of 10 bytes, with its own file handle and times. A live
// server is compared with it.
func Example() {
	captured := nfs3.GETATTR3res{}
	captured.Resok.ObjAttributes = nfs3.Fattr3{Type: nfs3.NF3REG, Mode: 0o644, Nlink: 1, Size: 10, Fileid: 7}
	op := &plan.Op{ID: 1, XID: 0x1234, Program: nfs3.NFS_PROGRAM, Version: nfs3.NFS_V3, Procedure: nfs3.NFSPROC3_GETATTR,
		Expect: &plan.Expect{Results: captured.Append(nil)}}
	j := judge.New(&workload.Workload{Ops: []*plan.Op{op}}, judge.Options{})

	live := captured
	live.Resok.ObjAttributes.Fileid = 4711 // every server numbers files as it likes
	fmt.Println(j.Judge(&judge.Reply{Op: op, Result: &live}).Verdict)

	live.Resok.ObjAttributes.Size = 5
	v := j.Judge(&judge.Reply{Op: op, Result: &live})
	fmt.Println(v.Verdict)
	for i := range v.Reasons {
		fmt.Printf("%s: %s\n", v.Reasons[i].Code, report.Sentence(&v.Reasons[i]))
	}

	gone := nfs3.GETATTR3res{Status: nfs3.NFS3ERR_STALE}
	v = j.Judge(&judge.Reply{Op: op, Result: &gone})
	fmt.Println(v.Verdict, v.Reasons[0].Code, v.Reasons[0].Now)
	// Output:
	// same
	// different
	// field_differs: resok.obj_attributes.size: 5, was 10
	// worse fails NFS3ERR_STALE
}
