package rpc

import (
	"fmt"
	"slices"
	"testing"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs2"
	"github.com/rpcrdma/toolkit/decode/nfs/nfs3"
	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/oncrpc"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/decode/xdr"
)

// appender is arguments or results.
type appender interface{ Append(b []byte) []byte }

func data(n int) xdr.Data { return xdr.Data{Inline: make([]byte, n), Length: uint32(n)} }

// TestDisagreement has calls and replies of which each can be decoded.
func TestDisagreement(t *testing.T) {
	fh := nfs3.NfsFh3{Data: []byte{1, 2, 3, 4, 5}}
	with := nfs3.PostOpAttr{AttributesFollow: true, Attributes: nfs3.Fattr3{Size: 9}}
	wcc := nfs3.WccData{Before: nfs3.PreOpAttr{AttributesFollow: true}, After: with}
	read3 := func(attr nfs3.PostOpAttr, count uint32, n int) appender {
		return &nfs3.READ3res{Resok: nfs3.READ3resok{FileAttributes: attr, Count: count, Data: data(n)}}
	}
	write3 := func(w nfs3.WccData, count uint32) appender {
		return &nfs3.WRITE3res{Resok: nfs3.WRITE3resok{FileWcc: w, Count: count}}
	}
	asks3 := &nfs3.READ3args{File: fh, Count: 100}
	sends3 := &nfs3.WRITE3args{File: fh, Count: 100, Data: data(100)}
	asks2, gives2 := &nfs2.Readargs{Count: 100}, func(n int) appender { return &nfs2.Readres{Reply: nfs2.Readokres{Data: data(n)}} }
	type op struct {
		number nfs4.NfsOpnum4
		body   xdr.Message
	}
	call4 := func(list ...op) appender {
		a := &nfs4.CompoundArgs{Minorversion: 1}
		for _, o := range list {
			a.Ops = append(a.Ops, nfs4.Op{Number: uint32(o.number), Body: o.body})
		}
		return a
	}
	reply4 := func(status nfs4.Nfsstat4, list ...op) appender {
		r := &nfs4.CompoundRes{Status: status}
		for _, o := range list {
			r.Ops = append(r.Ops, nfs4.Op{Number: uint32(o.number), Body: o.body})
		}
		return r
	}
	sequence := op{nfs4.OP_SEQUENCE, &nfs4.SEQUENCE4args{SaSessionid: [16]byte{7}, SaSequenceid: 5, SaSlotid: 3, SaHighestSlotid: 9}}
	slot := func(session byte, sequence, slot uint32) op {
		return op{nfs4.OP_SEQUENCE, &nfs4.SEQUENCE4res{SrResok4: nfs4.SEQUENCE4resok{SrSessionid: [16]byte{session}, SrSequenceid: sequence, SrSlotid: slot, SrHighestSlotid: 1}}}
	}
	read := op{nfs4.OP_READ, &nfs4.READ4args{Count: 100}}
	readen := func(n int) op {
		return op{nfs4.OP_READ, &nfs4.READ4res{Resok4: nfs4.READ4resok{Data: data(n)}}}
	}
	write := op{nfs4.OP_WRITE, &nfs4.WRITE4args{Data: data(100)}}
	written := func(n uint32) op {
		return op{nfs4.OP_WRITE, &nfs4.WRITE4res{Resok4: nfs4.WRITE4resok{Count: n}}}
	}
	const ok = nfs4.NFS4_OK
	stale := op{nfs4.OP_READ, &nfs4.READ4res{Status: nfs4.NFS4ERR_STALE}}
	for _, c := range []struct {
		name       string
		procedure  uint32
		args, res  appender
		call, want string // what is wrong with them
	}{
		{"READ", nfs3.NFSPROC3_READ, asks3, read3(with, 100, 100), "", ""},
		{"READ without attributes", nfs3.NFSPROC3_READ, asks3, read3(nfs3.PostOpAttr{}, 100, 100), "", ""},
		{"READ that is short", nfs3.NFSPROC3_READ, asks3, read3(with, 7, 7), "", ""},
		{"READ with less data", nfs3.NFSPROC3_READ, asks3, read3(with, 100, 99), "", "count of 100 with 99 bytes of data"},
		{"READ with more data", nfs3.NFSPROC3_READ, asks3, read3(nfs3.PostOpAttr{}, 99, 100), "", "count of 99 with 100 bytes of data"},
		{"READ beyond its count", nfs3.NFSPROC3_READ, asks3, read3(with, 101, 101), "", "101 bytes read, 1 more than the call has or asks for"},
		{"READ that failed", nfs3.NFSPROC3_READ, asks3, &nfs3.READ3res{Status: nfs3.NFS3ERR_IO}, "", ""},
		{"WRITE", nfs3.NFSPROC3_WRITE, sends3, write3(wcc, 100), "", ""},
		{"WRITE without attributes", nfs3.NFSPROC3_WRITE, sends3, write3(nfs3.WccData{}, 100), "", ""},
		{"WRITE that is short", nfs3.NFSPROC3_WRITE, sends3, write3(wcc, 1), "", ""},
		{"WRITE of more", nfs3.NFSPROC3_WRITE, sends3, write3(wcc, 101), "", "101 bytes written, 1 more than the call has or asks for"},
		{"WRITE that failed", nfs3.NFSPROC3_WRITE, sends3, &nfs3.WRITE3res{Status: nfs3.NFS3ERR_IO}, "", ""},
		{
			"WRITE with another count", nfs3.NFSPROC3_WRITE, &nfs3.WRITE3args{File: fh, Count: 101, Data: data(100)}, write3(wcc, 100),
			"count of 101 with 100 bytes of data", "",
		},
		{"READ of NFSv2", nfs2.NFSPROC_READ, asks2, gives2(100), "", ""},
		{"READ of NFSv2 beyond its count", nfs2.NFSPROC_READ, asks2, gives2(104), "", "104 bytes read, 4 more than the call has or asks for"},
		{"COMPOUND", 1, call4(sequence, read, write), reply4(ok, slot(7, 5, 3), readen(100), written(100)), "", ""},
		{"COMPOUND with short results", 1, call4(sequence, read, write), reply4(ok, slot(7, 5, 3), readen(0), written(0)), "", ""},
		{"other session", 1, call4(sequence), reply4(ok, slot(8, 5, 3)), "", "SEQUENCE: results of another session"},
		{"other slot", 1, call4(sequence), reply4(ok, slot(7, 5, 4)), "", "SEQUENCE: results of slot 4 for slot 3"},
		{"other sequence number", 1, call4(sequence), reply4(ok, slot(7, 6, 3)), "", "SEQUENCE: results of sequence number 6 for 5"},
		{"other slot, and a failure", 1, call4(sequence, read), reply4(nfs4.NFS4ERR_STALE, slot(7, 5, 4), stale), "", "SEQUENCE: results of slot 4 for slot 3"},
		{"READ of NFSv4 beyond its count", 1, call4(sequence, read), reply4(ok, slot(7, 5, 3), readen(101)), "", "READ: 101 bytes read, 1 more than the call has or asks for"},
		{"WRITE of NFSv4 of more", 1, call4(write), reply4(ok, written(101)), "", "WRITE: 101 bytes written, 1 more than the call has or asks for"},
		{
			"failure before", 1, call4(sequence, read),
			reply4(nfs4.NFS4ERR_BADSLOT, op{nfs4.OP_SEQUENCE, &nfs4.SEQUENCE4res{SrStatus: nfs4.NFS4ERR_BADSLOT}}), "", "",
		},
		{"failure", 1, call4(sequence, read), reply4(nfs4.NFS4ERR_STALE, slot(7, 5, 3), stale), "", ""},
	} {
		h := oncrpc.Call{RPCVersion: oncrpc.Version, Program: nfs3.NFS_PROGRAM, Version: 3, Procedure: c.procedure}
		switch c.args.(type) {
		case *nfs2.Readargs:
			h.Version = 2
		case *nfs4.CompoundArgs:
			h.Version = 4
		}
		disagree(t, c.name, &h, c.args, c.res, c.call, c.want)
	}

	// Callbacks have the numbers of other operations.
	cb := nfs4.CbCompoundArgs{Minorversion: 1}
	cb.Ops = []nfs4.Op{{Number: uint32(nfs4.OP_CB_SEQUENCE), Body: &nfs4.CB_SEQUENCE4args{CsaSessionid: [16]byte{7}, CsaSequenceid: 5}}}
	for _, c := range []struct {
		slot uint32
		want string
	}{{0, ""}, {1, "CB_SEQUENCE: results of slot 1 for slot 0"}} {
		res := nfs4.CbCompoundRes{}
		res.Ops = []nfs4.Op{{Number: uint32(nfs4.OP_CB_SEQUENCE), Body: &nfs4.CB_SEQUENCE4res{
			CsrResok4: nfs4.CB_SEQUENCE4resok{CsrSessionid: [16]byte{7}, CsrSequenceid: 5, CsrSlotid: c.slot},
		}}}
		h := oncrpc.Call{RPCVersion: oncrpc.Version, Program: nfs4.NFS4_CALLBACK, Version: nfs4.NFS_CB, Procedure: nfs4.CB_COMPOUND}
		disagree(t, "callback", &h, &cb, &res, "", c.want)
	}
}

// TestCommitted: written data is at least as stable as the call asks for.
func TestCommitted(t *testing.T) {
	values := []nfs3.StableHow{nfs3.UNSTABLE, nfs3.DATA_SYNC, nfs3.FILE_SYNC, 3, 7}
	for i, stable := range values[:3] {
		for j, committed := range values {
			want := ""
			if j < i || j > 2 {
				want = fmt.Sprintf("committed is %v for stable %v", committed, stable)
			}
			h := oncrpc.Call{RPCVersion: oncrpc.Version, Program: nfs3.NFS_PROGRAM, Version: 3, Procedure: nfs3.NFSPROC3_WRITE}
			args3 := &nfs3.WRITE3args{File: nfs3.NfsFh3{Data: []byte{1, 2, 3}}, Count: 4, Stable: stable, Data: data(4)}
			disagree(t, want, &h, args3, &nfs3.WRITE3res{Resok: nfs3.WRITE3resok{Count: 4, Committed: committed}}, "", want)

			h.Version, h.Procedure = 4, nfs4.NFSPROC4_COMPOUND
			args4, res4 := &nfs4.CompoundArgs{Minorversion: 1}, &nfs4.CompoundRes{}
			args4.Ops = []nfs4.Op{{Number: uint32(nfs4.OP_WRITE), Body: &nfs4.WRITE4args{Stable: nfs4.StableHow4(stable), Data: data(4)}}}
			res4.Ops = []nfs4.Op{{Number: uint32(nfs4.OP_WRITE), Body: &nfs4.WRITE4res{Resok4: nfs4.WRITE4resok{Count: 4, Committed: nfs4.StableHow4(committed)}}}}
			if want != "" {
				want = "WRITE: " + want
			}
			disagree(t, want, &h, args4, res4, "", want)
		}
	}
}

// disagree looks at a call and its reply, decoded on demand and at once.
func disagree(t *testing.T, name string, h *oncrpc.Call, args, res appender, call, want string) {
	t.Helper()
	tx := &transaction.Transaction{Named: true, Program: h.Program, Version: h.Version, Procedure: h.Procedure}
	payload, reply := args.Append(h.Append(nil)), res.Append((&oncrpc.Reply{}).Append(nil))
	tx.Call.Last.Number, tx.Call.Payload, tx.Call.PayloadLength = 1, payload, len(payload)
	tx.Reply.Last.Number, tx.Reply.Payload, tx.Reply.PayloadLength = 2, slices.Clip(reply), len(reply)
	for _, set := range []func(*View){func(v *View) { v.Set(tx) }, func(v *View) { v.SetAll(tx) }} {
		var v View
		set(&v)
		if v.ArgsErr != nil || v.ResultErr != nil || v.CallErr != nil || v.ReplyErr != nil {
			t.Fatalf("%s: %v, %v, %v, %v", name, v.CallErr, v.ArgsErr, v.ReplyErr, v.ResultErr)
		}
		if got := v.Contradiction(); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
		if got := v.ArgsContradiction(); got != call {
			t.Errorf("%s: call: %q, want %q", name, got, call)
		}
		n := 0
		v.Malformed(func(packet uint64, part string, err error) {
			n++
			if packet == 1 && (part != "arguments" || err.Error() != call) || packet == 2 && (part != "results" || err.Error() != want) {
				t.Errorf("%s: packet %d, %s: %v", name, packet, part, err)
			}
		})
		if bad := call != "" || want != ""; (n > 0) != bad || v.Undecoded() != bad {
			t.Errorf("%s: %d problems", name, n)
		}
	}
	var b projection
	if got := b.set(tx); got != (call == "" && want == "") {
		t.Errorf("%s: usual %v", name, got)
	}
}
