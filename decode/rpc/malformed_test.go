package rpc

import (
	"bytes"
	"testing"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs3"
	"github.com/rpcrdma/toolkit/decode/oncrpc"
	"github.com/rpcrdma/toolkit/decode/rpcrdma"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/decode/xdr"
)

// TestMalformedNoMessage: an RDMA_NOMSG without a chunk that holds its message is malformed; one whose message was not captured is not.
func TestMalformedNoMessage(t *testing.T) {
	header := func(typ rpcrdma.Type) rpcrdma.Header {
		return rpcrdma.Header{XID: 7, Version: rpcrdma.Version1, Credits: 1, Type: typ}
	}
	cut := header(rpcrdma.TypeNoMsg)
	cut.Cut = true
	for _, c := range []struct {
		name   string
		header rpcrdma.Header
		length int // of the message, of which nothing is there
		want   int
	}{
		{"no chunk", header(rpcrdma.TypeNoMsg), 0, 1},
		{"chunk not captured", header(rpcrdma.TypeNoMsg), 100, 0},
		{"header cut", cut, 0, 0},
		{"error", header(rpcrdma.TypeError), 0, 0},
	} {
		tx := &transaction.Transaction{}
		tx.Call.Last.Number, tx.Call.Payload, tx.Call.PayloadLength = 1, make([]byte, 40), 40
		tx.Call.Payload[11], tx.Call.PayloadLength = 2, 40 // RPC version 2
		tx.Reply.Last.Number, tx.Reply.Transport, tx.Reply.Header, tx.Reply.PayloadLength = 2, true, c.header, c.length
		var v View
		v.SetAll(tx)
		n := 0
		v.Malformed(func(packet uint64, part string, err error) {
			if packet != 2 || part != "reply header" {
				t.Errorf("%s: packet %d, %s: %v", c.name, packet, part, err)
			}
			n++
		})
		if n != c.want {
			t.Errorf("%s: %d parts are malformed, want %d", c.name, n, c.want)
		}
	}
}

// TestMalformedBodies has bodies of RPCSEC_GSS with integrity (RFC 2203, section 5.3.2.2) whose lengths or sequence numbers are wrong.
func TestMalformedBodies(t *testing.T) {
	credential := xdr.AppendOpaque([]byte{0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 2}, []byte("handle..")) // version 1, DATA, sequence number 5, integrity
	call := (&oncrpc.Call{RPCVersion: oncrpc.Version, Program: nfs3.NFS_PROGRAM, Version: nfs3.NFS_V3, Procedure: nfs3.NFSPROC3_GETATTR,
		Cred: oncrpc.Auth{Flavor: oncrpc.RPCSecGSS, Body: credential}, Verf: oncrpc.Auth{Flavor: oncrpc.RPCSecGSS, Body: []byte("mic.")}}).Append(nil)
	reply := (&oncrpc.Reply{Verf: oncrpc.Auth{Flavor: oncrpc.RPCSecGSS, Body: []byte("mic.")}}).Append(nil)
	wrap := func(head []byte, sequence uint32, m xdr.Message) []byte {
		b := m.Append(xdr.AppendUint32(nil, sequence))
		return xdr.AppendOpaque(xdr.AppendOpaque(bytes.Clone(head), b), []byte("checksum"))
	}
	args, results := &nfs3.GETATTR3args{Object: file}, &nfs3.GETATTR3res{Status: nfs3.NFS3ERR_STALE}
	whole, answer := wrap(call, 5, args), wrap(reply, 5, results)
	change := func(b []byte, at int, value uint32) []byte {
		b = bytes.Clone(b)
		copy(b[at:], xdr.AppendUint32(nil, value))
		return b
	}
	const checksum = 12 // from the end, with its length
	for _, c := range []struct {
		name         string
		call, reply  []byte
		lost         int // bytes that were not captured of each
		part, status string
		want         error
	}{
		{"whole", whole, answer, 0, "", "NFS3ERR_STALE", nil},
		{"cut", whole, answer, 4, "", "NFS3ERR_STALE", nil},
		{"length of the arguments", change(whole, len(call), 9999), answer, 0, "arguments", "NFS3ERR_STALE", errBody},
		{"sequence number", wrap(call, 6, args), answer, 0, "arguments", "NFS3ERR_STALE", errSequence},
		{"of another transmission", whole, wrap(reply, 4, results), 0, "", "NFS3ERR_STALE", nil},
		{"length of the results", whole, change(answer, len(reply), 9999), 0, "results", "", errBody},
		{"shorter than the sequence number", whole, change(answer, len(reply), 3), 0, "results", "", errBody},
		{"length of the checksum", whole, change(answer, len(answer)-checksum, 9999), 0, "results", "NFS3ERR_STALE", errChecksum},
		{"no checksum", whole[:len(whole)-checksum], answer, 0, "arguments", "NFS3ERR_STALE", errChecksum},
	} {
		tx := &transaction.Transaction{Named: true, Program: nfs3.NFS_PROGRAM, Version: nfs3.NFS_V3, Procedure: nfs3.NFSPROC3_GETATTR}
		tx.Call.Last.Number, tx.Call.Payload, tx.Call.PayloadLength = 1, c.call[:len(c.call)-c.lost], len(c.call)
		tx.Reply.Last.Number, tx.Reply.Payload, tx.Reply.PayloadLength = 2, c.reply[:len(c.reply)-c.lost], len(c.reply)
		var v View
		v.Set(tx)
		var part string
		var err error
		v.Malformed(func(_ uint64, p string, e error) { part, err = p, e })
		if part != c.part || err != c.want || v.Undecoded() != (err != nil) || v.Status() != c.status {
			t.Errorf("%s: %s: %v, status %q; want %s: %v, %q", c.name, part, err, v.Status(), c.part, c.want, c.status)
		}
	}
}
